package backup

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// TestAppsAreImportedAndExported copies apps from one daemon to another by their APIs, with commands that are killed at any
// moment and made again, and back to the first one.
func TestAppsAreImportedAndExported(t *testing.T) {
	t.Parallel()
	binary := e2e.NeedBinary(t)
	a, b := e2e.StartDaemon(t, binary), e2e.StartDaemon(t, binary)
	space := a.First("/v3/spaces?names=dev")
	a.API("POST", "/v3/service_instances", e2e.Doc{"type": "user-provided", "name": "mailer", "credentials": e2e.Doc{"key": "s3cr3t"}, "tags": []string{"smtp"}, "syslog_drain_url": "syslog://203.0.113.1:514",
		"relationships": e2e.Doc{"space": e2e.ToOne(space)}}, nil)
	a.PushProbe("shop")
	shop := a.App("shop")
	a.Bind("shop", a.First("/v3/service_instances?names=mailer"))
	a.API("PATCH", "/v3/apps/"+shop+"/environment_variables", e2e.Doc{"var": e2e.Doc{"COLOUR": "blue", "N": "7"}}, nil)
	a.API("PATCH", "/v3/apps/"+shop, e2e.Doc{"metadata": e2e.Doc{"labels": e2e.Doc{"team": "red"}}}, nil)
	a.API("POST", "/v3/apps/"+shop+"/processes/web/actions/scale", e2e.Doc{"instances": 2}, nil)
	a.Running("shop", "web", 2)
	a.API("POST", "/v3/apps", e2e.Doc{"name": "empty", "relationships": e2e.Doc{"space": e2e.ToOne(space)}}, nil)
	org := a.First("/v3/organizations?names=cupola")
	var domain, route struct{ GUID string }
	a.API("POST", "/v3/domains", e2e.Doc{"name": "shop.example", "relationships": e2e.Doc{"organization": e2e.ToOne(org)}}, &domain)
	a.API("POST", "/v3/routes", e2e.Doc{"host": "www", "path": "/buy", "relationships": e2e.Doc{"space": e2e.ToOne(space), "domain": e2e.ToOne(domain.GUID)}}, &route)
	a.API("POST", "/v3/routes/"+route.GUID+"/destinations", e2e.Doc{"destinations": []e2e.Doc{{"app": e2e.Doc{"guid": shop}}}}, nil)
	for name, daemons := range map[string][]*e2e.Daemon{"both": {a, b}, "lone": {a}} {
		for _, d := range daemons {
			d.API("POST", "/Users", e2e.Doc{"userName": name, "password": "a-password", "emails": []e2e.Doc{{"value": name}}}, nil)
		}
		user := e2e.Doc{"data": e2e.Doc{"username": name}}
		a.API("POST", "/v3/roles", e2e.Doc{"type": "organization_user", "relationships": e2e.Doc{"user": user, "organization": e2e.ToOne(org)}}, nil)
		a.API("POST", "/v3/roles", e2e.Doc{"type": "space_developer", "relationships": e2e.Doc{"user": user, "space": e2e.ToOne(space)}}, nil)
	}
	transfer := func(d *e2e.Daemon, verb string, other *e2e.Daemon, args ...string) *exec.Cmd {
		way := map[string]string{"import": "--from", "export": "--to"}[verb]
		cmd := exec.Command(binary, append([]string{verb, way, "http://" + other.Addr, way + "-user", "admin", "--org", "cupola"}, args...)...)
		cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+d.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword, "CUPOLA_OTHER_PASSWORD="+e2e.AdminPassword)
		return cmd
	}
	run := func(cmd *exec.Cmd, says ...string) string {
		t.Helper()
		out, err := cmd.CombinedOutput()
		for _, want := range says {
			if !strings.Contains(string(out), want) {
				t.Errorf("the output has no %q", want)
			}
		}
		if err != nil || t.Failed() {
			t.Fatalf("%v: %v\n%s", cmd.Args[1:], err, out)
		}
		return string(out)
	}

	run(transfer(b, "import", a, "--dry-run"), "would be created", "shop", "would be copied: files", "2 apps would be copied")
	if all, err := e2e.List[e2e.Doc](t.Context(), b.Client(), "/v3/apps"); err != nil || len(all) > 0 {
		t.Fatalf("after a dry run: got %v, %v; want no app", all, err)
	}
	seed := e2e.Seed()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 8 {
		cmd := transfer(b, "import", a)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	run(transfer(b, "import", a), "shop", "2 of 2 running", "empty", "its manifest alone", "of the space not copied for lone:", "2 apps copied")
	if roles, err := e2e.List[e2e.Doc](t.Context(), b.Client(), "/v3/roles?types=space_developer&user_guids="+b.First("/v3/users?usernames=both")); err != nil || len(roles) != 1 {
		t.Errorf("got %v, %v; want the role of the user who is there, too", roles, err)
	}
	same(t, a, b)
	b.Answers("shop", "ready")
	run(transfer(b, "import", a, "--app", "shop"), "files there already, 2 of 2 running", "1 app copied")

	run(transfer(b, "import", a, "--app", "shop", "--domain", "localhost=shop.example"), "1 app copied")
	for _, host := range []string{"www.shop.example/buy", "shop.shop.example/"} {
		name, path, _ := strings.Cut(host, "/")
		if status, body, err := b.Get(name, "/"+path); err != nil || status != 200 || !strings.Contains(body, "ready") {
			t.Errorf("%s: got %d %q, %v; want the app", host, status, body, err)
		}
	}

	run(transfer(b, "import", a, "--app", "shop", "--droplets"), "droplet copied, 2 of 2 running")
	a.Deleted("shop")
	for _, p := range packagesOf(t, b, "shop") {
		if _, err := b.Begin("DELETE", "/v3/packages/"+p, nil); err != nil {
			t.Fatal(err)
		}
	}
	e2e.Eventually(t, time.Minute, func() string { return strings.Join(packagesOf(t, b, "shop"), " ") })
	run(transfer(b, "export", a, "--app", "shop"), "droplet copied, 2 of 2 running")
	same(t, b, a)
	a.Answers("shop", "ready")
	out, err := transfer(b, "import", a, "--space", "nowhere").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "there is no such space") {
		t.Errorf("from a space that is not there: got %v\n%s", err, out)
	}
	wrong := transfer(b, "import", a)
	wrong.Env = append(wrong.Env, "CUPOLA_OTHER_PASSWORD=wrong")
	if out, err := wrong.CombinedOutput(); err == nil || !strings.Contains(string(out), "log in as admin at http://"+a.Addr) {
		t.Errorf("with a wrong password: got %v\n%s", err, out)
	}
}

// packagesOf are the GUIDs of an app's packages.
func packagesOf(t *testing.T, d *e2e.Daemon, app string) (guids []string) {
	t.Helper()
	all, err := e2e.List[struct{ GUID string }](context.Background(), d.Client(), "/v3/apps/"+d.App(app)+"/packages")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		guids = append(guids, p.GUID)
	}
	return guids
}

// same wants the app shop to be the same at two daemons, and there once.
func same(t *testing.T, a, b *e2e.Daemon) {
	t.Helper()
	views := [2]map[string]string{}
	for i, d := range []*e2e.Daemon{a, b} {
		app := d.App("shop")
		views[i] = map[string]string{}
		for name, path := range map[string]string{"env": "/v3/apps/" + app + "/environment_variables", "features": "/v3/apps/" + app + "/features"} {
			var out struct{ Var, Resources any }
			d.API("GET", path, nil, &out)
			views[i][name] = fmt.Sprint(out)
		}
		var system struct {
			Env struct {
				Services map[string][]struct {
					Name        string
					Tags        []string
					Credentials map[string]string
					Drain       string `json:"syslog_drain_url"`
				} `json:"VCAP_SERVICES"`
			} `json:"system_env_json"`
		}
		d.API("GET", "/v3/apps/"+app+"/env", nil, &system)
		views[i]["services"] = fmt.Sprint(system.Env.Services)
		var view struct {
			State    string
			Metadata struct{ Labels map[string]string }
		}
		d.API("GET", "/v3/apps/"+app, nil, &view)
		views[i]["app"] = fmt.Sprint(view)
		all, err := e2e.List[struct {
			URL string
		}](context.Background(), d.Client(), "/v3/apps/"+app+"/routes")
		if err != nil {
			t.Fatal(err)
		}
		views[i]["routes"] = fmt.Sprint(all)
		apps, err := e2e.List[e2e.Doc](context.Background(), d.Client(), "/v3/apps?names=shop")
		if err != nil || len(apps) != 1 {
			t.Errorf("got %d apps named shop, %v; want one", len(apps), err)
		}
	}
	if !strings.Contains(views[0]["services"], "s3cr3t") || !strings.Contains(views[0]["env"], "blue") {
		t.Errorf("got %v; want the credentials and the environment", views[0])
	}
	if !maps.Equal(views[0], views[1]) {
		t.Errorf("got\n%v\nand\n%v", views[0], views[1])
	}
}
