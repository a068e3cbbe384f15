package web

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/runtime/contract"
	"cupola/server/osb/osbtest"
	"cupola/test/e2e"
)

// catalog offers a database whose plans have schemas for their parameters.
const catalog = `{"services": [{"id": "db-id", "name": "db", "description": "a database", "bindable": true, "plan_updateable": true, "instances_retrievable": true,
"bindings_retrievable": true, "tags": ["sql"], "metadata": {"shareable": true, "documentationUrl": "http://docs.example"},
"plans": [{"id": "small-id", "name": "small", "description": "a small one", "maintenance_info": {"version": "1.0.0"},
  "schemas": {"service_instance": {"create": {"parameters": {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "required": ["size"], "properties": {
      "size": {"type": "integer", "minimum": 1, "maximum": 64, "default": 4, "title": "Size", "description": "In gigabytes."},
      "engine": {"type": "string", "enum": ["fast", "safe"], "description": "How it writes."},
      "audited": {"type": "boolean", "description": "Whether it logs each query."},
      "admin_password": {"type": "string", "minLength": 4},
      "extensions": {"type": "array", "items": {"type": "string"}},
      "backup": {"type": "object", "properties": {"hour": {"type": "integer", "minimum": 0, "maximum": 23}, "keep": {"type": "number"}}}}}}},
    "service_binding": {"create": {"parameters": {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": {"role": {"type": "string", "enum": ["reader", "writer"]}}}}}}},
 {"id": "large-id", "name": "large", "description": "a large one", "free": false, "maintenance_info": {"version": "2.0.0"}, "metadata": {"costs": [{"amount": {"usd": 9.5}, "unit": "MONTHLY"}]}}]}]}`

// release is the layer of a release of one job, whose process waits.
func release(t *testing.T) []byte {
	t.Helper()
	file := func(name, text string) e2e.TarEntry {
		return e2e.TarEntry{Header: tar.Header{Name: name, Mode: 0o755}, Content: []byte(text)}
	}
	entries := []e2e.TarEntry{
		file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nvcap:x:1000:1000::/home/vcap:/bin/sh\n"), file("etc/group", "root:x:0:\nvcap:x:1000:\n"),
		file("var/vcap/jobs-src/ticker/job.MF", "---\nname: ticker\ntemplates: {bpm.yml.erb: config/bpm.yml}\npackages: []\nproperties:\n  pause: {default: 3600}\n"),
		file("var/vcap/jobs-src/ticker/templates/bpm.yml.erb", "processes:\n- name: ticker\n  executable: /bin/sleep\n  args: [\"<%= p(\"pause\") %>\"]\n  limits: {memory: 32M}\n"),
		file("var/vcap/jobs-src/once/job.MF", "---\nname: once\ntemplates: {run.erb: bin/run}\npackages: []\n"),
		file("var/vcap/jobs-src/once/templates/run.erb", "#!/bin/sh\necho once\n"),
	}
	for _, tool := range []string{"sh", "echo", "sleep"} {
		entries = append(entries, e2e.TarEntry{Header: tar.Header{Name: "bin/" + tool, Typeflag: tar.TypeSymlink, Linkname: contract.Helper}})
	}
	return e2e.LayerOf(t, entries...)
}

// deployment is a manifest of that release.
func deployment(registry string) string {
	return `name: clock
releases:
- name: small
  version: "1"
  url: ` + registry + `/stacks
  stemcell: {os: test, version: "1"}
  credentials: {username: ` + e2e.RegistryUser + `, password: ` + e2e.RegistryPassword + `}
update: {canaries: 1, max_in_flight: 1, canary_watch_time: 100-20000, update_watch_time: 100-20000}
instance_groups:
- name: ticker
  instances: 2
  persistent_disk: 16
  vm_resources: {cpu: 1, ram: 64, ephemeral_disk_size: 32}
  jobs:
  - {name: ticker, release: small, properties: {pause: 3600}}
- name: smoke
  lifecycle: errand
  instances: 1
  jobs:
  - {name: once, release: small}
variables:
- {name: clock_password, type: password}
`
}

// platform is a daemon with what the screens of the platform show.
type platform struct {
	*e2e.Daemon
	broker   *osbtest.Broker
	registry *e2e.ImageRegistry
	config   e2e.Doc
}

// startPlatform starts one: with cells, a broker, a registry, an app, a BOSH
// deployment and users.
func startPlatform(t *testing.T, modules string) platform {
	t.Helper()
	registry := e2e.StartRegistry(t)
	registry.Push(t, "small", v1.Config{}, e2e.SmallStack(t, "small"))
	registry.Push(t, "unused", v1.Config{}, e2e.SmallStack(t, "unused"))
	registry.Push(t, "test-1-1", v1.Config{}, release(t))
	pushNoisy(t, registry)
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--cells", "[{name: one, tags: [ssd]}, {name: two}]", "--data-services", "files")
	broker := osbtest.New()
	t.Cleanup(broker.Close)
	broker.SetCatalog(catalog)
	p := platform{d, broker, registry, nil}
	d.Client()
	d.PushProbe("probe")
	p.deploy()
	if err := d.Change("POST", "/v3/service_brokers", e2e.Doc{"name": "corner-shop", "url": broker.URL, "authentication": e2e.Doc{"type": "basic", "credentials": e2e.Doc{"username": osbtest.Username, "password": osbtest.Password}}}); err != nil {
		t.Fatal(err)
	}
	for _, plan := range []string{"small", "large"} {
		d.API("POST", "/v3/service_plans/"+d.First("/v3/service_plans?service_broker_names=corner-shop&names="+plan)+"/visibility", e2e.Doc{"type": "public"}, nil)
	}
	space := d.First("/v3/spaces?names=dev")
	for _, role := range []string{"space_developer", "space_auditor"} {
		user := addUser(d, role)
		addRole(d, user, "organization_user", "organization", d.First("/v3/organizations?names=cupola"))
		addRole(d, user, role, "space", space)
	}
	addReaders(d)
	p.config = e2e.Doc{"port": d.Addr[len("127.0.0.1:"):], "admin": e2e.AdminPassword, "password": password, "modules": modules, "areas": []string{"platform_services", "platform_settings", "platform_orgs", "platform_machine", "platform_image", "platform_pictures", "platform_access", "commands", "readers", "platform_restart", "platform_hostile"},
		"apps": e2e.Doc{"probe": d.App("probe")}, "space": space, "org": d.First("/v3/organizations?names=cupola"),
		"registry": registry.Host, "registryUser": e2e.RegistryUser, "registryPassword": e2e.RegistryPassword, "manifest": deployment(registry.Host)}
	return p
}

// pushNoisy pushes an image that runs testdata/noisy.
func pushNoisy(t *testing.T, registry *e2e.ImageRegistry) {
	t.Helper()
	program, err := os.ReadFile(e2e.Program(t, e2e.Repository(t), "./test/e2e/web/testdata/noisy"))
	if err != nil {
		t.Fatal(err)
	}
	registry.Push(t, "noisy", v1.Config{Entrypoint: []string{"/srv/noisy"}, ExposedPorts: map[string]struct{}{"8080/tcp": {}}}, e2e.SmallStack(t, "noisy"),
		e2e.LayerOf(t, e2e.TarEntry{Header: tar.Header{Name: "srv/noisy", Mode: 0o755}, Content: program}))
}

// deploy deploys the BOSH deployment, and waits for its instances.
func (p platform) deploy() {
	p.T.Helper()
	file := filepath.Join(p.T.TempDir(), "manifest.yml")
	if err := os.WriteFile(file, []byte(deployment(p.registry.Host)), 0o600); err != nil {
		p.T.Fatal(err)
	}
	if out, err := p.Run("deployment", "deploy", "-f", file); err != nil {
		p.T.Fatalf("deploy: %v\n%s", err, out)
	}
}

// age makes all images in the cache look unused for an hour, so that a collection
// may take them.
func (p platform) age() {
	p.T.Helper()
	records, err := filepath.Glob(filepath.Join(p.Dir, "rootfs", "images", "*.json"))
	if err != nil || len(records) == 0 {
		p.T.Fatalf("there are no images: %v", err)
	}
	long := time.Now().Add(-time.Hour)
	for _, name := range records {
		if err := os.Chtimes(name, long, long); err != nil {
			p.T.Fatal(err)
		}
	}
}

// TestPlatform drives the screens of the platform in one browser, on one daemon.
func TestPlatform(t *testing.T) {
	t.Parallel()
	modules := needBrowser(t)
	p := startPlatform(t, modules)
	drive(t, p.config, p.answer)
}

// answer does what the browser's side cannot.
func (p platform) answer(t *testing.T, ask string) {
	wanted, isGot := strings.CutPrefix(ask, "broker got ")
	switch {
	case isGot:
		p.wantParameters(t, wanted)
	case ask == "broker fails":
		p.broker.Fault(http.MethodPut, "instance", osbtest.Answer(http.StatusBadRequest, `{"description": "no room on the shelf"}`))
	case ask == "hostile broker":
		p.registerHostile(t)
	case ask == "broker says hostile things":
		p.sayHostile()
	case ask == "broker heals":
		p.broker.Fault(http.MethodPut, "instance", nil)
	case ask == "broker upgrades":
		p.broker.SetCatalog(strings.Replace(catalog, `"maintenance_info": {"version": "1.0.0"}`, `"maintenance_info": {"version": "1.1.0", "description": "mends a leak"}`, 1))
	case ask == "kill":
		p.Kill()
	case ask == "start":
		p.Start()
	case ask == "age images":
		p.age()
	default:
		t.Errorf("the browser's side asks for %q", ask)
	}
}

// registerHostile registers a broker whose catalog is hostile in all its texts.
func (p platform) registerHostile(t *testing.T) {
	t.Helper()
	var services []e2e.Doc
	for n, s := range hostileStrings(t) {
		property := e2e.Doc{"type": "string", "title": s, "description": s, "enum": []string{s, "other"}, "default": s}
		schema := e2e.Doc{"create": e2e.Doc{"parameters": e2e.Doc{"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": e2e.Doc{s: property}}}}
		services = append(services, e2e.Doc{"id": fmt.Sprint("offering-", n), "name": s, "description": s, "bindable": true, "tags": []string{s},
			"metadata": e2e.Doc{"displayName": s, "documentationUrl": s, "imageUrl": s, "longDescription": s, "providerDisplayName": s},
			"plans": []e2e.Doc{{"id": fmt.Sprint("plan-", n), "name": s, "description": s, "free": false, "schemas": e2e.Doc{"service_instance": schema},
				"maintenance_info": e2e.Doc{"version": "1.0.0", "description": s},
				"metadata":         e2e.Doc{"displayName": s, "bullets": []string{s}, "costs": []e2e.Doc{{"amount": e2e.Doc{s: 1.5}, "unit": s}}}}}})
	}
	catalog, err := json.Marshal(e2e.Doc{"services": services})
	if err != nil {
		t.Fatal(err)
	}
	broker := osbtest.New()
	t.Cleanup(broker.Close)
	broker.SetCatalog(string(catalog))
	credentials := e2e.Doc{"username": osbtest.Username, "password": osbtest.Password}
	if err := p.Change("POST", "/v3/service_brokers", e2e.Doc{"name": hostileStrings(t)[0], "url": broker.URL, "authentication": e2e.Doc{"type": "basic", "credentials": credentials}}); err != nil {
		t.Errorf("the catalog is refused: %v", err)
	}
}

// sayHostile lets the broker answer the next instance with a dashboard that is a script, and refuse others with one.
func (p platform) sayHostile() {
	var asked atomic.Int32
	p.broker.Fault(http.MethodPut, "instance", func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			osbtest.Answer(http.StatusCreated, `{"dashboard_url": "javascript:alert(1)"}`)(w, r)
			return
		}
		osbtest.Answer(http.StatusBadRequest, `{"description": "<script>alert(1)</script><img src=x onerror=alert(2)>"}`)(w, r)
	})
}

// wantParameters wants the broker to have been asked for an instance with these.
func (p platform) wantParameters(t *testing.T, wanted string) {
	var want map[string]any
	if err := json.Unmarshal([]byte(wanted), &want); err != nil {
		t.Fatal(err)
	}
	for _, r := range p.broker.Requests() {
		if got, _ := r.Body["parameters"].(map[string]any); r.Method == http.MethodPut && reflect.DeepEqual(got, want) {
			return
		}
	}
	t.Errorf("the broker was never asked for an instance with %s", wanted)
}
