package images

import (
	"archive/tar"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// TestAnAppThatIsAnImage runs an image of a private registry as an app, and
// shows that it needs the registry no longer.
func TestAnAppThatIsAnImage(t *testing.T) {
	t.Parallel()
	binary, r := e2e.NeedBinary(t), e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, binary, "--registry-ca", r.CA)
	digest := r.Push(t, "hello", v1.Config{Entrypoint: []string{"./hello"}, WorkingDir: "/srv", User: "1234", Env: []string{"PATH=/srv:/bin", "GREETING=from the image"},
		ExposedPorts: map[string]struct{}{"9000/tcp": {}, "53/udp": {}}},
		e2e.SmallStack(t, "docker"), e2e.LayerOf(t, e2e.TarEntry{Header: tar.Header{Name: "srv/hello", Mode: 0o755}, Content: e2e.HelloProgram(t)}))
	image := r.Host + "/stacks/small:hello"
	d.Flag("diego_docker", true)

	for _, password := range []string{"", "wrong"} {
		if fault := d.PushDocker(t, "hello-image", image, password); !strings.Contains(fault, "the registry refuses access") {
			t.Errorf("password %q: got %q", password, fault)
		}
	}
	if fault := d.PushDocker(t, "hello-image", image, e2e.RegistryPassword); fault != "" {
		t.Fatal(fault)
	}
	pinned := r.Host + "/stacks/small@" + digest
	if fault := d.PushDocker(t, "taken-image", pinned, ""); !strings.Contains(fault, "the registry refuses access") {
		t.Errorf("the digest of an image in the cache, without a password: got %q", fault)
	}
	if fault := d.PushDocker(t, "pinned-image", pinned, e2e.RegistryPassword); fault != "" {
		t.Error(fault)
	}
	d.MapRoute(t, "hello-image")
	d.Running("hello-image", "web", 1)
	d.Answers("hello-image", "hello from hello-image")
	d.Tells(t, "hello-image", "id -u", "1234")
	d.Tells(t, "hello-image", "echo $GREETING $PORT. in $PWD", "from the image . in /srv")

	out, err := d.Run("app", "render", "hello-image", "--controller", "statefulset")
	for _, want := range []string{"kind: StatefulSet", "image: " + image, "containerPort: 9000", "number: 9000", "host: hello-image.", "VCAP_APPLICATION: REPLACE"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("app render: %v\n%s\nwant %q", err, out, want)
			break
		}
	}

	// The image goes, then the registry, then the daemon.
	r.Remove(t, digest)
	knocks := r.Vanish(t)
	d.Kill()
	d.Start()
	livesOn(d, t, "hello-image", digest)
	d.Tells(t, "hello-image", "cat /etc/os-release", "NAME=docker")
	d.API("PATCH", "/v3/processes/"+d.Process("hello-image"), e2e.Doc{"command": "echo by a command of mine on $PORT; exec hello"}, nil)
	d.API("POST", "/v3/apps/"+d.App("hello-image")+"/actions/restart", nil, nil)
	d.Running("hello-image", "web", 5)
	d.Answers("hello-image", "hello from hello-image")
	d.Logged("hello-image", "by a command of mine on 9000")
	standsOn(d, t, digest)
	if n := knocks.Load(); n != 0 {
		t.Errorf("got %d connections to a registry that is gone; want none", n)
	}
	if fault := d.PushDocker(t, "hello-image", image, e2e.RegistryPassword); fault == "" || knocks.Load() == 0 {
		t.Errorf("a push without the registry: got %q, %d connections; want it tried in vain", fault, knocks.Load())
	}
	if fault := d.PushDocker(t, "pinned-image", pinned, ""); fault != "" {
		t.Errorf("a push of the image that the app runs, without the registry: got %q", fault)
	}
	for _, app := range []string{"hello-image", "taken-image", "pinned-image"} {
		d.Deleted(app)
	}
	emptied(d, t)
}

// TestARegistryMustBeTrusted pulls from a registry whose CA the daemon was not
// told of.
func TestARegistryMustBeTrusted(t *testing.T) {
	t.Parallel()
	binary, r := e2e.NeedBinary(t), e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, binary)
	r.Push(t, "1", v1.Config{Cmd: []string{"sleep", "1000"}}, e2e.SmallStack(t, "stranger"))
	d.Flag("diego_docker", true)
	asked := r.Asked(t)
	if fault := d.PushDocker(t, "stranger", r.Host+"/stacks/small:1", e2e.RegistryPassword); !strings.Contains(fault, "certificate") {
		t.Errorf("got %q; want that its certificate is not trusted", fault)
	}
	if n := r.Asked(t) - asked; n != 0 {
		t.Errorf("got %d requests; want none to a stranger", n)
	}
}

// TestImagesSayHowTheyRun runs images that say it in the ways there are. Each
// prints who it is, where, and what it was given.
func TestImagesSayHowTheyRun(t *testing.T) {
	t.Parallel()
	binary, r := e2e.NeedBinary(t), e2e.StartTLSRegistry(t)
	d := e2e.StartDaemon(t, binary, "--registry-ca", r.CA)
	d.Flag("diego_docker", true)
	users := e2e.LayerOf(t,
		e2e.TarEntry{Header: tar.Header{Name: "etc/passwd", Mode: 0o644}, Content: []byte("root:x:0:0::/root:/bin/sh\napp:x:77:88::/srv:/bin/sh\n")},
		e2e.TarEntry{Header: tar.Header{Name: "etc/group", Mode: 0o644}, Content: []byte("root:x:0:\napp:x:88:\nstaff:x:99:app\n")},
		e2e.TarEntry{Header: tar.Header{Name: "srv/dir", Typeflag: tar.TypeDir, Mode: 0o755}, Content: nil},
		e2e.TarEntry{Header: tar.Header{Name: "srv/tell", Mode: 0o755}, Content: []byte("#!/bin/sh\necho \"I am $(id -u):$(id -g) in $PWD with $# [$*] and $GREETING\"\nexec sleep 1000\n")})
	path, tell := []string{"PATH=/srv:/bin", "GREETING=a=b c"}, []string{"/srv/tell"}
	for name, c := range map[string]struct {
		config v1.Config
		says   string
	}{
		"entrypoint":           {v1.Config{Entrypoint: tell, Env: path}, "I am 0:0 in / with 0 [] and a=b c"},
		"cmd":                  {v1.Config{Cmd: append(tell, "one", "a b")}, "I am 0:0 in / with 2 [one a b] and "},
		"entrypoint-and-cmd":   {v1.Config{Entrypoint: append(tell, "one"), Cmd: []string{"$HOME", "two"}, Env: path}, "I am 0:0 in / with 3 [one $HOME two] and a=b c"},
		"shell-form":           {v1.Config{Entrypoint: []string{"/bin/sh", "-c", "exec tell $GREETING"}, Env: path}, "I am 0:0 in / with 2 [a=b c] and a=b c"},
		"by-path":              {v1.Config{Cmd: []string{"tell"}, Env: path, User: "1234"}, "I am 1234:0 in / with 0 [] and a=b c"},
		"relative":             {v1.Config{Cmd: []string{"../tell"}, Env: path, WorkingDir: "/srv/dir"}, "I am 0:0 in /srv/dir with 0 [] and a=b c"},
		"user-name":            {v1.Config{Cmd: tell, User: "app"}, "I am 77:88 in / with 0 [] and "},
		"user-and-group":       {v1.Config{Cmd: tell, User: "app:staff"}, "I am 77:99 in / with 0 [] and "},
		"user-and-own-group":   {v1.Config{Cmd: tell, User: "5:staff"}, "I am 5:99 in / with 0 [] and "},
		"user-and-group-by-id": {v1.Config{Cmd: tell, User: "5:6", WorkingDir: "/srv"}, "I am 5:6 in /srv with 0 [] and "},
	} {
		t.Run(name, func(t *testing.T) {
			d := d.On(t)
			r.Push(t, name, c.config, e2e.SmallStack(t, name), users)
			if fault := d.PushDocker(t, name, r.Host+"/stacks/small:"+name, e2e.RegistryPassword); fault != "" {
				t.Fatal(fault)
			}
			d.API("PATCH", "/v3/processes/"+d.Process(name), e2e.Doc{"health_check": e2e.Doc{"type": "process"}}, nil)
			d.Logged(name, c.says)
			d.API("DELETE", "/v3/apps/"+d.App(name), nil, nil)
		})
	}
}
