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
	var build struct {
		State, Error string
		Droplet      struct{ GUID string }
	}
	eventually(t, 60*time.Second, func() string {
		d.api("GET", "/v3/builds/"+b.GUID, nil, &build)
		if build.State == "STAGING" {
			return "the build is STAGING"
		}
		return ""
	})
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

// TestAnAppThatIsAnImage runs images of a private registry as apps: by their
// entrypoint, their user and port, and by commands of the user's.
func TestAnAppThatIsAnImage(t *testing.T) {
	d := startDaemon(t, needBinary(t))
	r := startRegistry(t)
	r.push(t, "hello", v1.Config{Entrypoint: []string{"./hello"}, WorkingDir: "/srv", User: "1234", Env: []string{"PATH=/srv:/bin", "GREETING=from the image"},
		ExposedPorts: map[string]struct{}{"9000/tcp": {}, "53/udp": {}}},
		smallStack(t, "docker"), layerOf(t, tarEntry{tar.Header{Name: "srv/hello", Mode: 0o755}, helloProgram(t)}))
	image := r.host + "/stacks/small:hello"
	d.api("PATCH", "/v3/feature_flags/diego_docker", map[string]any{"enabled": true}, nil)

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
	d.crashAndReturn("hello-image")

	var process struct{ GUID string }
	d.api("GET", "/v3/apps/"+d.app("hello-image")+"/processes/web", nil, &process)
	d.api("PATCH", "/v3/processes/"+process.GUID, map[string]any{"command": "echo by a command of mine on $PORT; exec hello"}, nil)
	r.Close()
	d.kill()
	d.start()
	d.api("POST", "/v3/apps/"+d.app("hello-image")+"/actions/restart", nil, nil)
	d.running("hello-image", "web", 1)
	d.answers("hello-image", "hello from hello-image")
	d.logged("hello-image", "by a command of mine on 9000")
	d.deleted("hello-image")
}

// tells runs a command as a task, and checks what it says.
func (d *daemon) tells(t *testing.T, app, command, want string) {
	t.Helper()
	mark := fmt.Sprintf("task %d says ", time.Now().UnixNano())
	d.api("POST", "/v3/apps/"+d.app(app)+"/tasks", map[string]any{"command": "echo " + mark + "$(" + command + ")"}, nil)
	d.logged(app, mark+want)
}
