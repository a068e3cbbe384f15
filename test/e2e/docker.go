package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// HelloProgram is the Go example as one static file.
func HelloProgram(t *testing.T) []byte {
	t.Helper()
	program, err := os.ReadFile(Program(t, Example(t, "go"), "."))
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// PushDocker does what `cf push --docker-image` does, and gives the build's
// error.
func (d *Daemon) PushDocker(t *testing.T, app, image, password string) string {
	t.Helper()
	var found struct{ Resources []struct{ GUID string } }
	d.API("GET", "/v3/apps?names="+app, nil, &found)
	var made struct{ GUID string }
	if len(found.Resources) == 0 {
		var space struct{ Resources []struct{ GUID string } }
		d.API("GET", "/v3/spaces?names=dev", nil, &space)
		d.API("POST", "/v3/apps", map[string]any{"name": app, "lifecycle": map[string]any{"type": "docker", "data": map[string]any{}},
			"relationships": map[string]any{"space": map[string]any{"data": map[string]any{"guid": space.Resources[0].GUID}}}}, &made)
	}
	guid := d.App(app)
	data := map[string]any{"image": image}
	if password != "" {
		data["username"], data["password"] = RegistryUser, password
	}
	var p, b struct{ GUID string }
	toApp := map[string]any{"app": map[string]any{"data": map[string]any{"guid": guid}}}
	d.API("POST", "/v3/packages", map[string]any{"type": "docker", "data": data, "relationships": toApp}, &p)
	d.API("POST", "/v3/builds", map[string]any{"package": map[string]any{"guid": p.GUID}}, &b)
	build := d.Built(t, b.GUID)
	if build.State != "STAGED" {
		return build.Error
	}
	d.API("PATCH", "/v3/apps/"+guid+"/relationships/current_droplet", map[string]any{"data": map[string]any{"guid": build.Droplet.GUID}}, nil)
	d.API("POST", "/v3/apps/"+guid+"/actions/restart", nil, nil)
	return ""
}

// MapRoute leads app.localhost to the app.
func (d *Daemon) MapRoute(t *testing.T, app string) {
	t.Helper()
	var space, domain struct{ Resources []struct{ GUID string } }
	d.API("GET", "/v3/spaces?names=dev", nil, &space)
	d.API("GET", "/v3/domains?names=localhost", nil, &domain)
	one := func(guid string) map[string]any { return map[string]any{"data": map[string]any{"guid": guid}} }
	var route struct{ GUID string }
	d.API("POST", "/v3/routes", map[string]any{"host": app, "relationships": map[string]any{"space": one(space.Resources[0].GUID), "domain": one(domain.Resources[0].GUID)}}, &route)
	d.API("POST", "/v3/routes/"+route.GUID+"/destinations", map[string]any{"destinations": []any{map[string]any{"app": map[string]any{"guid": d.App(app)}}}}, nil)
}

// Process is the GUID of an app's web process.
func (d *Daemon) Process(app string) string {
	d.T.Helper()
	return d.First("/v3/apps/" + d.App(app) + "/processes?types=web")
}

// Tells runs a command as a task, and checks what it says.
func (d *Daemon) Tells(t *testing.T, app, command, want string) {
	t.Helper()
	mark := fmt.Sprintf("task %d says ", time.Now().UnixNano())
	d.API("POST", "/v3/apps/"+d.App(app)+"/tasks", map[string]any{"command": "echo " + mark + "$(" + command + ")"}, nil)
	d.Logged(app, mark+want)
}
