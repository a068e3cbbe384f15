package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// tenant makes a user who develops in the space dev, and logs in.
func (d *daemon) tenant(name string) *client {
	d.t.Helper()
	d.api("POST", "/Users", doc{"userName": name, "password": "secret", "emails": []doc{{"value": name}}}, nil)
	user := doc{"data": doc{"username": name}}
	d.api("POST", "/v3/roles", doc{"type": "organization_user", "relationships": doc{"user": user, "organization": toOne(d.first("/v3/organizations"))}}, nil)
	d.api("POST", "/v3/roles", doc{"type": "space_developer", "relationships": doc{"user": user, "space": toOne(d.first("/v3/spaces?names=dev"))}}, nil)
	return d.as(name)
}

func (d *daemon) as(name string) *client {
	d.t.Helper()
	c, err := login(context.Background(), "http://"+d.addr, name, "secret")
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

// sendManifest applies a manifest, and gives the GUID of its job.
func (d *daemon) sendManifest(c *client, text string) (job string) {
	d.t.Helper()
	req, err := http.NewRequest("POST", c.url("/v3/spaces/"+d.first("/v3/spaces?names=dev")+"/actions/apply_manifest"), strings.NewReader(text))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-yaml")
	res, err := c.send(req)
	if err != nil {
		d.t.Fatal(err)
	}
	res.Body.Close()
	location := res.Header.Get("Location")
	return location[strings.LastIndex(location, "/")+1:]
}

// jobState asks as a client that is no CLI, whose polls are held.
func (d *daemon) jobState(guid string) string {
	d.t.Helper()
	c := d.client()
	req, err := http.NewRequest("GET", c.url("/v3/jobs/"+guid), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Authorization", "bearer "+c.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	var job struct{ State string }
	if err := json.NewDecoder(res.Body).Decode(&job); err != nil {
		d.t.Fatal(err)
	}
	return job.State
}

func (d *daemon) count(path string) int {
	d.t.Helper()
	var list struct {
		Pagination struct {
			Total int `json:"total_results"`
		}
	}
	d.api("GET", path, nil, &list)
	return list.Pagination.Total
}

// writesMeanwhile creates orgs as the admin until the job has ended, or for so
// many, and tells how long the slowest took.
func (d *daemon) writesMeanwhile(prefix, job string, most int) (n int, slowest time.Duration) {
	d.t.Helper()
	for ; n < most && d.jobState(job) == "PROCESSING"; n++ {
		began := time.Now()
		d.api("POST", "/v3/organizations", doc{"name": fmt.Sprint(prefix, n)}, nil)
		slowest = max(slowest, time.Since(began))
	}
	return n, slowest
}

// TestKilledInAManifest kills the daemon in the middle of a manifest of 500 apps.
// The next one goes on with it, and another user writes all the time.
func TestKilledInAManifest(t *testing.T) {
	t.Parallel()
	const apps = 500
	d := startDaemon(t, needBinary(t))
	var b strings.Builder
	b.WriteString("applications:\n")
	for i := range apps {
		fmt.Fprintf(&b, "- {name: many-%d, env: {N: %d}, memory: 64M, instances: 2, default-route: true}\n", i, i)
	}
	began := time.Now()
	job := d.sendManifest(d.tenant("tenant"), b.String())
	t.Logf("answered after %v", time.Since(began))
	const routes = "/v3/routes?per_page=1"
	before, slowest := d.writesMeanwhile("before-", job, 20)
	if before < 20 {
		t.Fatalf("the job ended after %d writes of another user", before)
	}
	d.kill()
	d.start()
	if state, n := d.jobState(job), d.count(routes); state != "PROCESSING" || n == 0 || n >= apps {
		t.Errorf("the job is %s after the kill, with %d routes; want it half way", state, n)
	}
	after, slow := d.writesMeanwhile("after-", job, 100_000)
	if state := d.jobState(job); state != "COMPLETE" {
		t.Errorf("the job is %s; want it COMPLETE", state)
	}
	if a, r := d.count("/v3/apps?per_page=1"), d.count(routes); a != apps || r != apps {
		t.Errorf("got %d apps and %d routes; want %d", a, r, apps)
	}
	var env struct{ Var map[string]string }
	d.api("GET", "/v3/apps/"+d.app("many-499")+"/environment_variables", nil, &env)
	if env.Var["N"] != "499" {
		t.Errorf("the last app has the environment %v", env.Var)
	}
	if slowest = max(slowest, slow); slowest > 2*time.Second {
		t.Errorf("a write of another user took %v", slowest)
	}
	t.Logf("%d writes of another user, the slowest took %v; all in %v", before+after, slowest, time.Since(began))
	job = d.deletes("/v3/spaces/" + d.first("/v3/spaces?names=dev"))
	n, slowest := d.writesMeanwhile("last-", job, 100_000)
	if state := d.jobState(job); state != "COMPLETE" || d.count("/v3/apps?per_page=1") != 0 {
		t.Errorf("the deletion of the space is %s", state)
	}
	t.Logf("%d writes while the space was deleted, the slowest took %v", n, slowest)
}

// deletes asks for a deletion, and gives the GUID of its job.
func (d *daemon) deletes(path string) (job string) {
	d.t.Helper()
	c := d.client()
	req, err := http.NewRequest("DELETE", c.url(path), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	res, err := c.send(req)
	if err != nil {
		d.t.Fatal(err)
	}
	res.Body.Close()
	location := res.Header.Get("Location")
	return location[strings.LastIndex(location, "/")+1:]
}
