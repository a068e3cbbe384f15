package main

import (
	"archive/tar"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// helloProgram is the Go example as one static file.
func helloProgram(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hello")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Dir = example(t, "go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// pushDocker does what `cf push --docker-image` does, and gives the build's
// error.
func (d *daemon) pushDocker(t *testing.T, app, image, password string) string {
	t.Helper()
	var found struct{ Resources []struct{ GUID string } }
	d.api("GET", "/v3/apps?names="+app, nil, &found)
	var made struct{ GUID string }
	if len(found.Resources) == 0 {
		var space struct{ Resources []struct{ GUID string } }
		d.api("GET", "/v3/spaces?names=dev", nil, &space)
		d.api("POST", "/v3/apps", map[string]any{"name": app, "lifecycle": map[string]any{"type": "docker", "data": map[string]any{}},
			"relationships": map[string]any{"space": map[string]any{"data": map[string]any{"guid": space.Resources[0].GUID}}}}, &made)
	}
	guid := d.app(app)
	data := map[string]any{"image": image}
	if password != "" {
		data["username"], data["password"] = registryUser, password
	}
	var p, b struct{ GUID string }
	toApp := map[string]any{"app": map[string]any{"data": map[string]any{"guid": guid}}}
	d.api("POST", "/v3/packages", map[string]any{"type": "docker", "data": data, "relationships": toApp}, &p)
	d.api("POST", "/v3/builds", map[string]any{"package": map[string]any{"guid": p.GUID}}, &b)
	build := d.built(t, b.GUID)
	if build.State != "STAGED" {
		return build.Error
	}
	d.api("PATCH", "/v3/apps/"+guid+"/relationships/current_droplet", map[string]any{"data": map[string]any{"guid": build.Droplet.GUID}}, nil)
	d.api("POST", "/v3/apps/"+guid+"/actions/restart", nil, nil)
	return ""
}

// mapRoute leads app.localhost to the app.
func (d *daemon) mapRoute(t *testing.T, app string) {
	t.Helper()
	var space, domain struct{ Resources []struct{ GUID string } }
	d.api("GET", "/v3/spaces?names=dev", nil, &space)
	d.api("GET", "/v3/domains?names=localhost", nil, &domain)
	one := func(guid string) map[string]any { return map[string]any{"data": map[string]any{"guid": guid}} }
	var route struct{ GUID string }
	d.api("POST", "/v3/routes", map[string]any{"host": app, "relationships": map[string]any{"space": one(space.Resources[0].GUID), "domain": one(domain.Resources[0].GUID)}}, &route)
	d.api("POST", "/v3/routes/"+route.GUID+"/destinations", map[string]any{"destinations": []any{map[string]any{"app": map[string]any{"guid": d.app(app)}}}}, nil)
}

// TestAnAppThatIsAnImage runs an image of a private registry as an app, and
// shows that it needs the registry no longer.
func TestAnAppThatIsAnImage(t *testing.T) {
	t.Parallel()
	binary, r := needBinary(t), startTLSRegistry(t)
	d := startDaemon(t, binary, "--registry-ca", r.ca)
	digest := r.push(t, "hello", v1.Config{Entrypoint: []string{"./hello"}, WorkingDir: "/srv", User: "1234", Env: []string{"PATH=/srv:/bin", "GREETING=from the image"},
		ExposedPorts: map[string]struct{}{"9000/tcp": {}, "53/udp": {}}},
		smallStack(t, "docker"), layerOf(t, tarEntry{tar.Header{Name: "srv/hello", Mode: 0o755}, helloProgram(t)}))
	image := r.host + "/stacks/small:hello"
	d.flag("diego_docker", true)

	for _, password := range []string{"", "wrong"} {
		if fault := d.pushDocker(t, "hello-image", image, password); !strings.Contains(fault, "the registry refuses access") {
			t.Errorf("password %q: got %q", password, fault)
		}
	}
	if fault := d.pushDocker(t, "hello-image", image, registryPassword); fault != "" {
		t.Fatal(fault)
	}
	d.mapRoute(t, "hello-image")
	d.running("hello-image", "web", 1)
	d.answers("hello-image", "hello from hello-image")
	d.tells(t, "hello-image", "id -u", "1234")
	d.tells(t, "hello-image", "echo $GREETING $PORT. in $PWD", "from the image . in /srv")

	out, err := d.run("app", "render", "hello-image", "--controller", "statefulset")
	for _, want := range []string{"kind: StatefulSet", "image: " + image, "containerPort: 9000", "number: 9000", "host: hello-image.", "VCAP_APPLICATION: REPLACE"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("app render: %v\n%s\nwant %q", err, out, want)
			break
		}
	}

	// The image goes, then the registry, then the daemon.
	r.remove(t, digest)
	knocks := r.vanish(t)
	d.kill()
	d.start()
	d.livesOn(t, "hello-image", digest)
	d.tells(t, "hello-image", "cat /etc/os-release", "NAME=docker")
	d.api("PATCH", "/v3/processes/"+d.process("hello-image"), doc{"command": "echo by a command of mine on $PORT; exec hello"}, nil)
	d.api("POST", "/v3/apps/"+d.app("hello-image")+"/actions/restart", nil, nil)
	d.running("hello-image", "web", 5)
	d.answers("hello-image", "hello from hello-image")
	d.logged("hello-image", "by a command of mine on 9000")
	d.standsOn(t, digest)
	if n := knocks.Load(); n != 0 {
		t.Errorf("got %d connections to a registry that is gone; want none", n)
	}
	if fault := d.pushDocker(t, "hello-image", image, registryPassword); fault == "" || knocks.Load() == 0 {
		t.Errorf("a push without the registry: got %q, %d connections; want it tried in vain", fault, knocks.Load())
	}
	d.deleted("hello-image")
	d.emptied(t)
}

// process is the GUID of an app's web process.
func (d *daemon) process(app string) string {
	d.t.Helper()
	return d.first("/v3/apps/" + d.app(app) + "/processes?types=web")
}

// TestARegistryMustBeTrusted pulls from a registry whose CA the daemon was not
// told of.
func TestARegistryMustBeTrusted(t *testing.T) {
	t.Parallel()
	binary, r := needBinary(t), startTLSRegistry(t)
	d := startDaemon(t, binary)
	r.push(t, "1", v1.Config{Cmd: []string{"sleep", "1000"}}, smallStack(t, "stranger"))
	d.flag("diego_docker", true)
	asked := r.asked(t)
	if fault := d.pushDocker(t, "stranger", r.host+"/stacks/small:1", registryPassword); !strings.Contains(fault, "certificate") {
		t.Errorf("got %q; want that its certificate is not trusted", fault)
	}
	if n := r.asked(t) - asked; n != 0 {
		t.Errorf("got %d requests; want none to a stranger", n)
	}
}

// TestImagesSayHowTheyRun runs images that say it in the ways there are. Each
// prints who it is, where, and what it was given.
func TestImagesSayHowTheyRun(t *testing.T) {
	t.Parallel()
	binary, r := needBinary(t), startTLSRegistry(t)
	d := startDaemon(t, binary, "--registry-ca", r.ca)
	d.flag("diego_docker", true)
	users := layerOf(t,
		tarEntry{tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0::/root:/bin/sh\napp:x:77:88::/srv:/bin/sh\n")},
		tarEntry{tar.Header{Name: "etc/group", Mode: 0o644}, []byte("root:x:0:\napp:x:88:\nstaff:x:99:app\n")},
		tarEntry{tar.Header{Name: "srv/dir", Typeflag: tar.TypeDir, Mode: 0o755}, nil},
		tarEntry{tar.Header{Name: "srv/tell", Mode: 0o755}, []byte("#!/bin/sh\necho \"I am $(id -u):$(id -g) in $PWD with $# [$*] and $GREETING\"\nexec sleep 1000\n")})
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
			d := d.on(t)
			r.push(t, name, c.config, smallStack(t, name), users)
			if fault := d.pushDocker(t, name, r.host+"/stacks/small:"+name, registryPassword); fault != "" {
				t.Fatal(fault)
			}
			d.api("PATCH", "/v3/processes/"+d.process(name), doc{"health_check": doc{"type": "process"}}, nil)
			d.logged(name, c.says)
			d.api("DELETE", "/v3/apps/"+d.app(name), nil, nil)
		})
	}
}

// tells runs a command as a task, and checks what it says.
func (d *daemon) tells(t *testing.T, app, command, want string) {
	t.Helper()
	mark := fmt.Sprintf("task %d says ", time.Now().UnixNano())
	d.api("POST", "/v3/apps/"+d.app(app)+"/tasks", map[string]any{"command": "echo " + mark + "$(" + command + ")"}, nil)
	d.logged(app, mark+want)
}
