package nginx

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// As nginx-buildpack's varify, which escapes variables unless they are plaintext_env_vars.
func TestComplete(t *testing.T) {
	dir := t.TempDir()
	conf := write(t, dir, "nginx.conf", "{{module \"own\"}}\n{{module \"stock\"}}\n# pid x;\nevents {}\nhttp {\n  include custom.conf;\n  resolver {{nameservers}};\n  server { listen {{port}}; }\n}\n")
	custom := write(t, dir, "custom.conf", "set $a \"{{env \"A\"}}\"; set $b \"{{env \"B\"}}\"; proxy_temp_path mine;\n")
	write(t, dir, "modules/own.so", "")
	env := map[string]string{"A": `<a&"b"+c>`, "B": "<b>"}
	v := Values{Port: "8080", Env: func(name string) string { return env[name] }, Plain: []string{"B"}, LocalModules: filepath.Join(dir, "modules"), GlobalModules: "/global", NameServers: []string{"1.1.1.1", "2.2.2.2"}, Temp: "/t"}
	if err := v.Complete(conf); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(conf)
	want := "daemon off; pid \"/t/nginx.pid\"; load_module " + dir + "/modules/own.so;\nload_module /global/stock.so;\n# pid x;\nevents {}\nhttp {" +
		" client_body_temp_path \"/t/nginx_client_body\"; fastcgi_temp_path \"/t/nginx_fastcgi\"; uwsgi_temp_path \"/t/nginx_uwsgi\"; scgi_temp_path \"/t/nginx_scgi\";\n" +
		"  include custom.conf;\n  resolver 1.1.1.1 2.2.2.2;\n  server { listen 8080; }\n}\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, _ = os.ReadFile(custom)
	if want := "set $a \"&lt;a&amp;&#34;b&#34;&#43;c&gt;\"; set $b \"<b>\"; proxy_temp_path mine;\n"; string(got) != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestUserDirectivesStay(t *testing.T) {
	texts := []string{"daemon off;\nerror_log stderr; pid logs/nginx.pid;\nevents{}\nhttp{}\n"}
	Values{Temp: "/t"}.add(texts)
	if strings.Count(texts[0], "daemon off") != 1 || strings.Count(texts[0], "pid ") != 1 || !strings.Contains(texts[0], "http{ client_body_temp_path") {
		t.Errorf("got %q", texts[0])
	}
}

func TestFaults(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{"{{nonsense}}": "could not parse config file", "{{": "could not parse config file", "include gone.conf;": "could not read config file"} {
		if err := (Values{}).Complete(write(t, dir, "nginx.conf", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %s", text, err, want)
		}
	}
}

func TestNameServers(t *testing.T) {
	file := write(t, t.TempDir(), "resolv.conf", "search x\nnameserver 10.0.0.1\n# nameserver 9.9.9.9\nnameserver 10.0.0.2 \n")
	if got := nameServers(file); cmp.Diff([]string{"10.0.0.1", "10.0.0.2"}, got) != "" {
		t.Errorf("got %v", got)
	}
	if got := nameServers("/nowhere"); cmp.Diff([]string{"169.254.0.2"}, got) != "" {
		t.Errorf("got %v", got)
	}
}
