package services

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"cupola/server/osb/osbtest"
	"cupola/test/e2e"
)

// noRegistry is what npm says when it reaches none.
var noRegistry = regexp.MustCompile(`ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH`)

// npmDir is the app of testdata that reads bindings by a library, with what it
// needs from npm.
func npmDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/bindings-npm")); err != nil {
		t.Fatal(err)
	}
	npm := exec.Command("npm", "ci", "--omit=dev", "--no-audit", "--no-fund", "--fetch-retries=1")
	npm.Dir = dir
	out, err := npm.CombinedOutput()
	if noRegistry.Match(out) {
		t.Skipf("npm reaches no registry: %s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// filesByLibrary makes a Node app read a broker's binding by a library of npm, and
// watch another change: it must see each change at once, and none half done.
func filesByLibrary(d *e2e.Daemon, t *testing.T) {
	dir := npmDir(t)
	b := osbtest.New()
	defer b.Close()
	b.SetCatalog(`{"services": [{"id": "q", "name": "rabbitmq", "description": "d", "bindable": true, "plans": [{"id": "p", "name": "only", "description": "d"}]}]}`)
	plan := offered(d, b, "only")
	d.API("POST", "/v3/service_instances", e2e.Doc{"type": "managed", "name": "queue",
		"relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev")), "service_plan": e2e.ToOne(plan)}}, nil)
	instance := d.WaitFor("/v3/service_instances?names=queue")
	e2e.Eventually(t, time.Minute, func() string {
		var made withOperation
		d.API("GET", "/v3/service_instances/"+instance, nil, &made)
		return differs(made.LastOperation.State, "succeeded")
	})
	service := userProvided(d, "rotated", pair(0))
	e2e.WriteManifest(t, dir, e2e.Doc{"name": "reader", "memory": "128M", "disk_quota": "128M", "stack": "host", "command": "node server.js",
		"features": e2e.Doc{bindingForms[2].feature: true}, "services": []string{"queue", "rotated"}})
	if out, err := d.Run("push", dir); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.Running("reader", "web", 1)
	var queue struct{ Type, Provider, URI, Plan, Port string }
	askReader(d, "/queue", &queue)
	if queue.Type != "rabbitmq" || queue.Provider != "rabbitmq" || !strings.HasPrefix(queue.URI, "db://") || queue.Plan != "only" || queue.Port != "5432" {
		t.Errorf("got %+v; want the broker's binding", queue)
	}
	rotates(d, t, service)
	d.API("DELETE", "/v3/apps/"+d.App("reader"), nil, nil)
}

// pair are credentials of which one is never without the other.
func pair(n int) e2e.Doc { return e2e.Doc{"user": fmt.Sprint(n), "password": fmt.Sprint(n)} }

func rotates(d *e2e.Daemon, t *testing.T, service string) {
	api := d.Client()
	for n := range rotations {
		if err := api.Call(t.Context(), "PATCH", "/v3/service_instances/"+service, e2e.Doc{"credentials": pair(n + 1)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	changed := time.Now()
	var seen struct {
		Sets, Half, Looks int
		Last              string
	}
	e2e.Eventually(t, time.Minute, func() string {
		askReader(d, "/", &seen)
		return differs(seen.Last, fmt.Sprint(rotations))
	})
	if took := time.Since(changed); took > time.Second {
		t.Errorf("the library read the last set after %v; want within a second", took)
	}
	if seen.Half > 0 || seen.Sets < 2 {
		t.Errorf("got %+v; want whole sets only, and many", seen)
	}
	t.Logf("%+v", seen)
}

func askReader(d *e2e.Daemon, path string, into any) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		status, body, err := d.Get("reader.localhost", path)
		if err == nil && status == 200 {
			err = json.Unmarshal([]byte(body), into)
		}
		if err != nil || status != 200 {
			return fmt.Sprintf("got %d, %v: %s", status, err, body)
		}
		return ""
	})
}

// offered registers a broker, and gives one of its plans, for all to see.
func offered(d *e2e.Daemon, b *osbtest.Broker, plan string) (guid string) {
	d.T.Helper()
	d.API("POST", "/v3/service_brokers", e2e.Doc{"name": "broker", "url": b.URL,
		"authentication": e2e.Doc{"type": "basic", "credentials": e2e.Doc{"username": osbtest.Username, "password": osbtest.Password}}}, nil)
	guid = d.WaitFor("/v3/service_plans?names=" + plan)
	d.API("POST", "/v3/service_plans/"+guid+"/visibility", e2e.Doc{"type": "public"}, nil)
	return guid
}
