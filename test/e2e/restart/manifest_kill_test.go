package restart

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// tenant makes a user who develops in the space dev, and logs in.
func tenant(d *e2e.Daemon, name string) *e2e.Client {
	d.T.Helper()
	d.API("POST", "/Users", e2e.Doc{"userName": name, "password": "secret", "emails": []e2e.Doc{{"value": name}}}, nil)
	user := e2e.Doc{"data": e2e.Doc{"username": name}}
	d.API("POST", "/v3/roles", e2e.Doc{"type": "organization_user", "relationships": e2e.Doc{"user": user, "organization": e2e.ToOne(d.First("/v3/organizations"))}}, nil)
	d.API("POST", "/v3/roles", e2e.Doc{"type": "space_developer", "relationships": e2e.Doc{"user": user, "space": e2e.ToOne(d.First("/v3/spaces?names=dev"))}}, nil)
	return as(d, name)
}

func as(d *e2e.Daemon, name string) *e2e.Client {
	d.T.Helper()
	c, err := e2e.Login(context.Background(), "http://"+d.Addr, name, "secret")
	if err != nil {
		d.T.Fatal(err)
	}
	return c
}

// sendManifest applies a manifest, and gives the GUID of its job.
func sendManifest(d *e2e.Daemon, c *e2e.Client, text string) (job string) {
	d.T.Helper()
	req, err := http.NewRequest("POST", c.URL("/v3/spaces/"+d.First("/v3/spaces?names=dev")+"/actions/apply_manifest"), strings.NewReader(text))
	if err != nil {
		d.T.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-yaml")
	res, err := c.Send(req)
	if err != nil {
		d.T.Fatal(err)
	}
	res.Body.Close()
	location := res.Header.Get("Location")
	return location[strings.LastIndex(location, "/")+1:]
}

// jobState asks as a client that is no CLI, whose polls are held.
func jobState(d *e2e.Daemon, guid string) string {
	d.T.Helper()
	c := d.Client()
	req, err := http.NewRequest("GET", c.URL("/v3/jobs/"+guid), nil)
	if err != nil {
		d.T.Fatal(err)
	}
	req.Header.Set("Authorization", "bearer "+c.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		d.T.Fatal(err)
	}
	defer res.Body.Close()
	var job struct{ State string }
	if err := json.NewDecoder(res.Body).Decode(&job); err != nil {
		d.T.Fatal(err)
	}
	return job.State
}

func count(d *e2e.Daemon, path string) int {
	d.T.Helper()
	var list struct {
		Pagination struct {
			Total int `json:"total_results"`
		}
	}
	d.API("GET", path, nil, &list)
	return list.Pagination.Total
}

// pace is how another user's writes went while a job ran.
type pace struct {
	writes  int
	slowest time.Duration
	leap    int // the most routes by which the job changed their number during a write
}

// createsRoutes waits until a job has created its first route, without a pause: a
// fast machine would not be half way after one.
func createsRoutes(d *e2e.Daemon, job string) {
	d.T.Helper()
	for count(d, allRoutes) == 0 {
		if state := jobState(d, job); state != "PROCESSING" {
			d.T.Fatalf("the job is %s before it created routes", state)
		}
	}
}

// writesMeanwhile creates orgs as the admin until the job has ended.
func writesMeanwhile(d *e2e.Daemon, prefix, job string) (p pace) {
	d.T.Helper()
	for ; jobState(d, job) == "PROCESSING"; p.writes++ {
		before := count(d, allRoutes)
		began := time.Now()
		d.API("POST", "/v3/organizations", e2e.Doc{"name": fmt.Sprint(prefix, p.writes)}, nil)
		p.slowest = max(p.slowest, time.Since(began))
		after := count(d, allRoutes)
		p.leap = max(p.leap, after-before, before-after)
	}
	return p
}

const allRoutes = "/v3/routes?per_page=1"

// check fails where a write waited for half of the job, and for long, or where
// there were too few writes. A slow disk slows the job as well; a fast machine may
// do all of it between two writes.
func (p pace) check(t *testing.T, apps, writes int) {
	t.Helper()
	t.Logf("%d writes of another user, the slowest took %v; the job did at most %d apps during one", p.writes, p.slowest, p.leap)
	if p.leap > apps/2 && p.slowest > 250*time.Millisecond {
		t.Errorf("a write of another user waited for %d of %d apps of the job", p.leap, apps)
	}
	if p.writes < writes {
		t.Errorf("got %d writes of another user beside the job; want at least %d", p.writes, writes)
	}
}

// TestKilledInAManifest kills the daemon in the middle of a manifest of 500 apps.
// The next one goes on with it, and another user writes all the time.
func TestKilledInAManifest(t *testing.T) {
	t.Parallel()
	const apps = 500
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	var b strings.Builder
	b.WriteString("applications:\n")
	for i := range apps {
		fmt.Fprintf(&b, "- {name: many-%d, env: {N: %d}, memory: 64M, instances: 2, default-route: true}\n", i, i)
	}
	began := time.Now()
	job := sendManifest(d, tenant(d, "tenant"), b.String())
	t.Logf("answered after %v", time.Since(began))
	createsRoutes(d, job)
	d.Kill()
	d.Start()
	if state, n := jobState(d, job), count(d, allRoutes); state != "PROCESSING" || n == 0 || n >= apps {
		t.Errorf("the job is %s after the kill, with %d routes; want it half way", state, n)
	}
	after := writesMeanwhile(d, "after-", job)
	if state := jobState(d, job); state != "COMPLETE" {
		t.Errorf("the job is %s; want it COMPLETE", state)
	}
	if a, r := count(d, "/v3/apps?per_page=1"), count(d, allRoutes); a != apps || r != apps {
		t.Errorf("got %d apps and %d routes; want %d", a, r, apps)
	}
	var env struct{ Var map[string]string }
	d.API("GET", "/v3/apps/"+d.App("many-499")+"/environment_variables", nil, &env)
	if env.Var["N"] != "499" {
		t.Errorf("the last app has the environment %v", env.Var)
	}
	after.check(t, apps, 5)
	job = deletes(d, "/v3/spaces/"+d.First("/v3/spaces?names=dev"))
	last := writesMeanwhile(d, "last-", job)
	if state := jobState(d, job); state != "COMPLETE" || count(d, "/v3/apps?per_page=1") != 0 {
		t.Errorf("the deletion of the space is %s", state)
	}
	last.check(t, apps, 0)
}

// deletes asks for a deletion, and gives the GUID of its job.
func deletes(d *e2e.Daemon, path string) (job string) {
	d.T.Helper()
	c := d.Client()
	req, err := http.NewRequest("DELETE", c.URL(path), nil)
	if err != nil {
		d.T.Fatal(err)
	}
	res, err := c.Send(req)
	if err != nil {
		d.T.Fatal(err)
	}
	res.Body.Close()
	location := res.Header.Get("Location")
	return location[strings.LastIndex(location, "/")+1:]
}
