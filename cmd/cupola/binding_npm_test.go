package main

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

// filesByLibrary has a Node app read a broker's binding by a library of npm, and
// watch another change: it must see each change at once, and none half done.
func (d *daemon) filesByLibrary(t *testing.T) {
	dir := npmDir(t)
	b := osbtest.New()
	defer b.Close()
	b.SetCatalog(`{"services": [{"id": "q", "name": "rabbitmq", "description": "d", "bindable": true, "plans": [{"id": "p", "name": "only", "description": "d"}]}]}`)
	plan := d.offered(b, "only")
	d.api("POST", "/v3/service_instances", doc{"type": "managed", "name": "queue",
		"relationships": doc{"space": toOne(d.first("/v3/spaces?names=dev")), "service_plan": toOne(plan)}}, nil)
	d.waitFor("/v3/service_instances?names=queue&operation_states=succeeded")
	service := d.userProvided("rotated", pair(0))
	writeManifest(t, dir, doc{"name": "reader", "memory": "128M", "disk_quota": "128M", "stack": "host", "command": "node server.js",
		"features": doc{bindingForms[2].feature: true}, "services": []string{"queue", "rotated"}})
	if out, err := d.run("push", dir); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.running("reader", "web", 1)
	var queue struct{ Type, Provider, URI, Plan, Port string }
	d.askReader("/queue", &queue)
	if queue.Type != "rabbitmq" || queue.Provider != "rabbitmq" || !strings.HasPrefix(queue.URI, "db://") || queue.Plan != "only" || queue.Port != "5432" {
		t.Errorf("got %+v; want the broker's binding", queue)
	}
	d.rotates(t, service)
	d.api("DELETE", "/v3/apps/"+d.app("reader"), nil, nil)
}

// pair are credentials of which one is never without the other.
func pair(n int) doc { return doc{"user": fmt.Sprint(n), "password": fmt.Sprint(n)} }

func (d *daemon) rotates(t *testing.T, service string) {
	api := d.client()
	for n := range rotations {
		if err := api.call(t.Context(), "PATCH", "/v3/service_instances/"+service, doc{"credentials": pair(n + 1)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	changed := time.Now()
	var seen struct {
		Sets, Half, Looks int
		Last              string
	}
	eventually(t, 5*time.Second, func() string {
		d.askReader("/", &seen)
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

func (d *daemon) askReader(path string, into any) {
	d.t.Helper()
	eventually(d.t, 10*time.Second, func() string {
		status, body, err := d.get("reader.localhost", path)
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
func (d *daemon) offered(b *osbtest.Broker, plan string) (guid string) {
	d.t.Helper()
	d.api("POST", "/v3/service_brokers", doc{"name": "broker", "url": b.URL,
		"authentication": doc{"type": "basic", "credentials": doc{"username": osbtest.Username, "password": osbtest.Password}}}, nil)
	guid = d.waitFor("/v3/service_plans?names=" + plan)
	d.api("POST", "/v3/service_plans/"+guid+"/visibility", doc{"type": "public"}, nil)
	return guid
}

// waitFor waits for the first thing of a list.
func (d *daemon) waitFor(path string) (guid string) {
	d.t.Helper()
	eventually(d.t, 10*time.Second, func() string {
		var list struct{ Resources []struct{ GUID string } }
		if d.api("GET", path, nil, &list); len(list.Resources) == 0 {
			return "there is nothing at " + path
		}
		guid = list.Resources[0].GUID
		return ""
	})
	return guid
}
