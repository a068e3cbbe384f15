package push

import (
	"os"
	"strings"
	"testing"

	"cupola/test/e2e"
)

// TestToolchains builds a stack of Debian's packages with the toolchains of the buildpacks, and pushes the sample apps that need one to
// it. It downloads some 400 MB: make test-toolchains runs it.
func TestToolchains(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_TOOLCHAINS") == "" {
		t.Skip("set CUPOLA_TEST_TOOLCHAINS to download Debian's packages")
	}
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	if out, err := d.Run("stack", "build", "debian12", "--name", "full", "--with", "java,php,nginx,python", "--with", "ruby,node", "--data-dir", d.Dir); err != nil {
		t.Fatalf("stack build: %v\n%s", err, out)
	}
	for _, c := range []struct{ dir, app, path, says string }{
		{"java", "hello-java", "/", "hello from hello-java"},
		{"java-war", "hello-war", "/", "hello from hello-war, instance 0, Apache Tomcat/10"},
		{"php", "hello-php", "/", "hello from hello-php, instance 0, PHP 8"},
		{"php", "hello-php", "/no/such/file", "not found"}, // by its front controller
		{"nginx", "hello-nginx", "/whoami", "hello from hello-nginx, instance 0"},
		{"python", "hello-python", "/", "hello from hello-python"},
		{"ruby", "hello-ruby", "/", "hello from hello-ruby"},
		{"node", "hello-node", "/", "hello from hello-node"},
	} {
		t.Run(c.dir+c.path, func(t *testing.T) {
			d := d.On(t)
			if out, err := d.Run("push", "--stack", "full", builtExample(t, c.dir)); err != nil {
				t.Fatalf("push: %v\n%s", err, out)
			}
			d.Running(c.app, "web", 1)
			_, body, err := d.Get(c.app+".localhost", c.path)
			if err != nil || !strings.Contains(body, c.says) {
				t.Errorf("got %q, %v; want %q", body, err, c.says)
			}
		})
	}
}
