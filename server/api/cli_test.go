package api

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"cupola/server/broker"
	"cupola/server/control/stacks"
	"cupola/server/osb"
	"cupola/server/osb/osbtest"
	"cupola/server/uaa"
	"cupola/store"
	"cupola/store/cf"
)

// cliRequest is a line of testdata/cli-requests.txt.
type cliRequest struct {
	method, path string
	status       []int
	body         string
}

var cliLine = regexp.MustCompile(`^([A-Z]+) (\S+) ([0-9|]+)(?: (.*))?$`)

func parseCLI(t *testing.T, line string) cliRequest {
	t.Helper()
	m := cliLine.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("cannot read the line %q", line)
	}
	r := cliRequest{method: m[1], path: m[2], body: strings.ReplaceAll(m[4], `\n`, "\n")}
	for _, s := range strings.Split(m[3], "|") {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		r.status = append(r.status, n)
	}
	return r
}

// TestCLI replays what the official CLI sends, command after command, and
// wants of each answer what the CLI needs of it.
func TestCLI(t *testing.T) {
	text, err := os.ReadFile("testdata/cli-requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.write(func(tx *store.Tx) error { return seedCLI(tx, w) })
	w.saved["user"] = "user-bob"
	w.saved["broker_url"] = w.serveBroker()
	w.needs = readNeeds(t)
	command := ""
	for _, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "$ "):
			command = line[2:]
			w.saved["org"], w.saved["space"] = "org-1", "space-1" // what the CLI targets
		case line != "" && !strings.HasPrefix(line, "#"):
			w.replay(t, command, parseCLI(t, line))
		}
	}
	for _, n := range w.needs {
		for _, f := range n.fields {
			if !n.proved[f.String()] {
				t.Errorf("%s: no answer showed %s", n.line, f)
			}
		}
	}
}

// serveBroker starts a broker, and the loop that asks it, and gives its URL.
func (w *world) serveBroker() string { return w.startBroker().URL }

func (w *world) startBroker() *osbtest.Broker {
	b := osbtest.New()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	l := broker.New(broker.Config{Store: w.store, Client: osb.New(osb.Config{}), FirstPoll: time.Millisecond})
	go func() { done <- l.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
		b.Close()
	})
	return b
}

// seedCLI adds what the recorded commands expect to find.
func seedCLI(tx *store.Tx, w *world) error {
	b, err := w.blobs.Put(w.t.Context(), strings.NewReader("a droplet"))
	if err != nil {
		return err
	}
	w.saved["digest"] = b.Digest
	hash, err := bcrypt.GenerateFromPassword([]byte("pw"), bcrypt.MinCost)
	if err != nil {
		return err
	}
	for _, row := range []func() error{
		func() error { return seedApp(tx, "app-2", "pre") },
		func() error { return stacks.Offer(tx, []stacks.System{{Name: "cflinuxfs4"}}) },
		func() error { return store.OrgQuotas.Insert(tx, &cf.OrgQuota{Name: "q1"}) },
		func() error {
			return store.Users.Insert(tx, &cf.User{Resource: guid("user-bob"), Username: "bob", Origin: uaa.Origin, PasswordHash: string(hash)})
		},
		func() error {
			return store.Routes.Insert(tx, &cf.Route{SpaceGUID: "space-1", DomainGUID: "domain-1", Host: "pre",
				Destinations: []cf.Destination{{GUID: "dest-2", AppGUID: "app-2", ProcessType: "web", Protocol: "http1"}}})
		},
	} {
		if err := row(); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) replay(t *testing.T, command string, r cliRequest) {
	t.Helper()
	path, body := w.fill(r.path), w.fill(r.body)
	at := fmt.Sprintf("%s: %s %s", command, r.method, path)
	if strings.Contains(path+body, "{") && !strings.HasPrefix(body, "{") {
		t.Fatalf("%s: no answer showed the GUID", at)
	}
	got := w.send(t, r.method, path, body)
	for strings.HasPrefix(path, "/v3/jobs/") && strings.Contains(got.text, string(cf.JobProcessing)) {
		got = w.send(t, r.method, path, body) // a broker is asked: the test's time-out ends it
	}
	if !slices.Contains(r.status, got.status) {
		t.Fatalf("%s %s: got %d %s; want %v", at, body, got.status, got.text, r.status)
	}
	if why := w.unfit(r.method, got); why != "" {
		t.Errorf("%s: %s: %s", at, why, got.text)
	}
	bare, _, _ := strings.Cut(path, "?")
	for _, n := range w.needs {
		if n.path.MatchString(r.method+" "+bare) && got.status < 300 {
			if why := n.check(t, got); why != "" {
				t.Errorf("%s: %s: %s", at, why, got.text)
			}
		}
	}
	w.remember(path, got)
	if r.method == "POST" && path == "/v3/builds" {
		w.stage()
	}
}

func (w *world) send(t *testing.T, method, path, body string) answer {
	switch {
	case strings.HasPrefix(body, "@") && strings.HasSuffix(body, ".tgz"):
		return w.upload("admin", path, body[1:], tgzOf(t, "app/run", "x"))
	case strings.HasPrefix(body, "@"):
		return w.upload("admin", path, body[1:], zipOf(t, "bin/compile", "x"))
	case strings.HasPrefix(body, "applications:"):
		return w.ask("admin", method, path, body, "application/x-yaml")
	}
	return w.ask("admin", method, path, body, "")
}

// unfit reports what of an answer the CLI cannot use: it wants JSON of all but
// deletions and jobs, and absolute URLs.
func (w *world) unfit(method string, a answer) string {
	kind := a.header.Get("Content-Type")
	if location := a.header.Get("Location"); location != "" && !strings.HasPrefix(location, w.url+"/") {
		return "the Location is not absolute: " + location
	}
	if strings.Contains(a.text, `"href":"/`) {
		return "a link is not absolute"
	}
	if method == "DELETE" || a.status == 204 || a.header.Get("Location") != "" || strings.Contains(kind, "yaml") || strings.Contains(kind, "gzip") {
		return ""
	}
	if object, ok := a.json.(map[string]any); ok && object["operation"] != nil && object["state"] != string(cf.JobComplete) {
		return "the job is not done"
	}
	if a.json == nil || !strings.HasPrefix(kind, "application/json") {
		return "the answer is no JSON"
	}
	return ""
}

// collections are what a path's parts name.
var collections = map[string]string{
	"organizations": "org", "spaces": "space", "apps": "app", "packages": "package", "builds": "build", "droplets": "droplet", "routes": "route", "domains": "domain",
	"roles": "role", "users": "user", "buildpacks": "buildpack", "stacks": "stack", "security_groups": "security_group", "organization_quotas": "organization_quota", "space_quotas": "space_quota",
	"tasks": "task", "isolation_segments": "isolation_segment", "revisions": "revision",
	"service_brokers":   "service_broker",
	"service_instances": "service_instance", "service_credential_bindings": "service_credential_binding", "service_route_bindings": "service_route_binding",
	"service_plans": "service_plan", "service_offerings": "service_offering",
}

// remember keeps the GUIDs that an answer shows.
func (w *world) remember(path string, a answer) {
	if job := a.header.Get("Location"); job != "" {
		w.saved["job"] = job[strings.LastIndex(job, "/")+1:]
	}
	object, ok := a.json.(map[string]any)
	if !ok {
		return
	}
	w.rememberIncluded(object)
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	if list, ok := object["resources"].([]any); ok {
		if len(list) == 0 {
			return
		}
		object, parts = list[0].(map[string]any), parts[len(parts)-1:]
	}
	g, ok := object["guid"].(string)
	if !ok {
		return
	}
	for _, part := range slices.Backward(parts) {
		if kind := collections[part]; kind != "" {
			w.saved[kind] = g
			break
		}
	}
	w.rememberParts(object)
}

// rememberIncluded keeps the GUIDs of what an answer includes.
func (w *world) rememberIncluded(object map[string]any) {
	included, _ := object["included"].(map[string]any)
	for part, v := range included {
		list, _ := v.([]any)
		if kind := collections[part]; kind != "" && strings.HasPrefix(part, "service_") && len(list) > 0 {
			w.saved[kind], _ = list[0].(map[string]any)["guid"].(string)
		}
	}
}

func (w *world) rememberParts(object map[string]any) {
	if d, ok := object["destinations"].([]any); ok && len(d) > 0 {
		w.saved["destination"] = d[0].(map[string]any)["guid"].(string)
	}
	if d, ok := object["droplet"].(map[string]any); ok {
		w.saved["droplet"], _ = d["guid"].(string)
	}
	relationships, _ := object["relationships"].(map[string]any)
	if q, ok := relationships["quota"].(map[string]any); ok {
		if data, ok := q["data"].(map[string]any); ok {
			w.saved["organization_quota"] = data["guid"].(string)
		}
	}
}

// stage ends the build that was just begun, as the reconciler would.
func (w *world) stage() {
	w.write(func(tx *store.Tx) error {
		b, err := store.Builds.Get(tx, w.saved["build"])
		if err != nil {
			return err
		}
		return w.stageBuild(tx, b)
	})
}

func (w *world) stageBuild(tx *store.Tx, b *cf.Build) error {
	d := &cf.Droplet{AppGUID: b.AppGUID, PackageGUID: b.PackageGUID, BuildGUID: b.GUID, State: cf.DropletStaged, Lifecycle: b.Lifecycle,
		Digest: w.saved["digest"], ProcessTypes: map[string]string{"web": "./run"}}
	if err := store.Droplets.Insert(tx, d); err != nil {
		return err
	}
	b.State, b.DropletGUID = cf.BuildStaged, d.GUID
	return store.Builds.Update(tx, b)
}
