package backup

import (
	"archive/tar"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// TestASpaceIsRestored restores a space with three apps, one of which keeps notes in a database, and one is an image of a private registry, from a backup and what changed since: after
// it was deleted, and beside the running one, by commands whose daemon is killed at any moment.
func TestASpaceIsRestored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := newOffsite(t, dir)
	d := e2e.StartDaemon(t, o.binary, append(o.flags, "--backup-changes-every", "1s", "--data-services", "postgres")...)
	d.Prepared("postgres")
	makeSpace(t, d)
	command(t, d, "run")
	kept(d, "after the backup")
	d.API("PATCH", "/v3/apps/"+d.App("shop")+"/environment_variables", e2e.Doc{"var": e2e.Doc{"COLOUR": "green"}}, nil)
	file := filepath.Join(t.TempDir(), "all.backup")
	if out, err := d.Run("backup", "--data-dir", d.Dir, file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	time.Sleep(2 * time.Second) // parts are named by the second
	before := time.Now().UTC()
	time.Sleep(2 * time.Second)
	restore := func(args ...string) []string {
		return append([]string{"backups", "restore-space", "dev", "--data-dir", d.Dir}, args...)
	}
	at := []string{"--from", dir, "--identity", o.key, "--to", before.Format(time.RFC3339)}

	d.API("PATCH", "/v3/spaces/"+d.First("/v3/spaces?names=dev"), e2e.Doc{"metadata": e2e.Doc{"annotations": e2e.Doc{"cupola.dev/restoring": "not the daemon's"}}}, nil)
	says(t, d, restore(at...), false, "there is a space dev in the org cupola already: give --new")
	says(t, d, restore("--from", file, "--new", "copy", "--dry-run"), true, "notes would be restored", "shop", "3 apps of the space dev", "would be restored into the new space copy")
	has(t, killRestores(d, restore("--from", dir, "--identity", o.key, "--new", "copy", "--start")), "its route shop.localhost is left out: it is a route of the space dev", "left out", "revisions", "3 apps of the space dev", "started as they were")
	says(t, d, restore(append(at, "--new", "copy")...), false, "there is a space copy in the org cupola already")
	spaceIs(d, "copy", "green")
	hasNotes(d, "copy", "notes-copy")
	d.Answers("shop", "ready") // the running one
	d.API("POST", "/v3/domains", e2e.Doc{"name": "part.example"}, nil)
	says(t, d, restore("--from", file, "--new", "part", "--app", "shop", "--app", "shoop"), false, "the space dev of the backup has no app shoop")
	says(t, d, restore("--from", file, "--new", "part", "--app", "shop", "--domain", "localhost=part.example", "--start"), true, "1 app of the space dev", "started")
	if status, body, err := d.Get("shop.part.example", "/"); err != nil || status != 200 {
		t.Errorf("at the route of another domain: got %d %q, %v", status, body, err)
	}

	if err := d.Change("DELETE", "/v3/spaces/"+d.First("/v3/spaces?names=dev"), nil); err != nil {
		t.Fatal(err)
	}
	says(t, d, restore(at[2:]...), true, "notes restored", "3 apps of the space dev", "into the new space dev, stopped")
	for _, app := range []string{"shop", "hello-postgres", "image"} {
		d.API("POST", "/v3/apps/"+appIn(d, "dev", app)+"/actions/start", nil, nil)
	}
	spaceIs(d, "dev", "green")
	hasNotes(d, "dev", "hello-postgres")
	d.Answers("shop", "ready")
	if left, _ := filepath.Glob(filepath.Join(d.Dir, "backup-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// makeSpace gives the space dev two apps with services, and one of a private image.
func makeSpace(t *testing.T, d *e2e.Daemon) {
	t.Helper()
	d.PushNotes()
	d.DataBinding("hello-postgres", d.DataInstance("postgres", "notes"))
	d.RestartApp("hello-postgres")
	kept(d, "before the backup")
	d.PushProbe("shop")
	d.API("POST", "/v3/service_instances", e2e.Doc{"type": "user-provided", "name": "mailer", "credentials": e2e.Doc{"key": "s3cr3t"}, "relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev"))}}, nil)
	d.Bind("shop", d.First("/v3/service_instances?names=mailer"))
	d.API("PATCH", "/v3/apps/"+d.App("shop"), e2e.Doc{"metadata": e2e.Doc{"labels": e2e.Doc{"team": "red"}}}, nil)
	d.API("POST", "/v3/apps/"+d.App("shop")+"/processes/web/actions/scale", e2e.Doc{"instances": 2}, nil)
	r := e2e.StartRegistry(t)
	r.Push(t, "hello", v1.Config{Entrypoint: []string{"/hello"}}, e2e.SmallStack(t, "docker"), e2e.LayerOf(t, e2e.TarEntry{Header: tar.Header{Name: "hello", Mode: 0o755}, Content: e2e.HelloProgram(t)}))
	d.Flag("diego_docker", true)
	if fault := d.PushDocker(t, "image", r.Host+"/stacks/small:hello", e2e.RegistryPassword); fault != "" {
		t.Fatal(fault)
	}
}

// kept waits until the app has kept a note.
func kept(d *e2e.Daemon, note string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		if d.Keep(note + ".") {
			return ""
		}
		return "the note is not kept"
	})
}

// says runs a command that succeeds or not, and says some texts.
func says(t *testing.T, d *e2e.Daemon, args []string, succeeds bool, texts ...string) {
	t.Helper()
	out, err := exec.Command(d.Binary, args...).CombinedOutput()
	if (err == nil) != succeeds {
		t.Errorf("%q: %v", args, err)
	}
	has(t, string(out), texts...)
}

// has wants texts in an output.
func has(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !strings.Contains(out, want) {
			t.Errorf("the output has no %q", want)
		}
	}
	if t.Failed() {
		t.Fatal(out)
	}
}

// killRestores restores by commands whose daemon is killed, the first three times, and returns what the one said that succeeded.
func killRestores(d *e2e.Daemon, args []string) string {
	d.T.Helper()
	seed := e2e.Seed()
	d.T.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for kills := range 3 {
		cmd := exec.Command(d.Binary, args...)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			d.T.Fatal(err)
		}
		time.Sleep(time.Duration(500+random.IntN(1000+1000*kills)) * time.Millisecond)
		d.Kill()
		err := cmd.Wait()
		d.Start()
		d.T.Logf("%v\n%s", err, &said)
		if err == nil && kills > 0 {
			return said.String()
		}
		if err == nil {
			d.T.Fatal("the space was restored before the daemon was killed: nothing was tried")
		}
	}
	out, err := exec.Command(d.Binary, args...).CombinedOutput()
	if err != nil {
		d.T.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// appIn is the GUID of an app in a space of a name.
func appIn(d *e2e.Daemon, space, app string) string {
	d.T.Helper()
	return d.First("/v3/apps?" + url.Values{"names": {app}, "space_guids": {d.First("/v3/spaces?names=" + space)}}.Encode())
}

// spaceIs wants the apps of a space to run as they were.
func spaceIs(d *e2e.Daemon, space, colour string) {
	d.T.Helper()
	shop := appIn(d, space, "shop")
	for app, n := range map[string]int{shop: 2, appIn(d, space, "hello-postgres"): 1, appIn(d, space, "image"): 1} {
		e2e.Eventually(d.T, time.Minute, func() string {
			var stats struct{ Resources []struct{ State string } }
			d.API("GET", "/v3/apps/"+app+"/processes/web/stats", nil, &stats)
			if text := fmt.Sprint(stats.Resources); strings.Count(text, "RUNNING") != n || len(stats.Resources) != n {
				return text
			}
			return ""
		})
	}
	var env struct {
		Env    map[string]string `json:"environment_variables"`
		System struct {
			Services map[string][]struct {
				Name        string
				Credentials map[string]string
			} `json:"VCAP_SERVICES"`
		} `json:"system_env_json"`
	}
	d.API("GET", "/v3/apps/"+shop+"/env", nil, &env)
	if mailer := fmt.Sprint(env.System.Services); env.Env["COLOUR"] != colour || !strings.Contains(mailer, "s3cr3t") {
		d.T.Errorf("got %v, %s; want the environment and the credentials", env.Env, mailer)
	}
	var app struct {
		Metadata struct{ Labels map[string]string }
	}
	d.API("GET", "/v3/apps/"+shop, nil, &app)
	var packages struct{ Resources []struct{ State string } }
	d.API("GET", "/v3/apps/"+shop+"/packages", nil, &packages)
	if app.Metadata.Labels["team"] != "red" || len(packages.Resources) == 0 || packages.Resources[0].State != "READY" {
		d.T.Errorf("got %+v, %+v; want the label and the package", app, packages)
	}
}

// hasNotes wants the notes of a space's app to be those of the backup, at a host which it gets if it has none.
func hasNotes(d *e2e.Daemon, space, host string) {
	d.T.Helper()
	app := appIn(d, space, "hello-postgres")
	var routes struct{ Resources []any }
	if d.API("GET", "/v3/apps/"+app+"/routes", nil, &routes); len(routes.Resources) == 0 {
		var route struct{ GUID string }
		d.API("POST", "/v3/routes", e2e.Doc{"host": host, "relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=" + space)), "domain": e2e.ToOne(d.First("/v3/domains?names=localhost"))}}, &route)
		d.API("POST", "/v3/routes/"+route.GUID+"/destinations", e2e.Doc{"destinations": []e2e.Doc{{"app": e2e.Doc{"guid": app}}}}, nil)
	}
	e2e.Eventually(d.T, time.Minute, func() string {
		status, body, err := d.Get(host+".localhost", "/")
		switch {
		case err != nil || status != 200 || !strings.Contains(body, " before the backup.\n"):
			return fmt.Sprint(status, body, err)
		case strings.Contains(body, "after the backup"):
			return "the restored database is the running one"
		}
		return ""
	})
}
