package databroker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cupola/rootfs/volume"
	"cupola/runtime/lrp"
	"cupola/server/logcache"
	"cupola/server/osb"
	"cupola/store"
	"cupola/store/cf"

	"github.com/google/go-cmp/cmp"
)

// world is a broker with a real database of rows, on a machine that is not
// there: containers run when their rows say so.
type world struct {
	*broker
	t *testing.T

	mu      sync.Mutex
	volumes map[string]int64
	said    []string // statements that databases were given
	refuses string   // what databases answer instead of doing it
	files   string   // has a directory for each volume

	certified map[string]bool // instances whose container has a certificate
	gauges    []logcache.Envelope
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w := &world{t: t, volumes: map[string]int64{}, files: t.TempDir()}
	w.broker = newBroker(Config{Store: s, Services: Names(), Volumes: w, Attach: w.attach,
		Containers: w.containers, Trust: func() []byte { return []byte("the CA") }, HasFile: func(string, string) bool { return true },
		Connections: func(ports map[string][]uint16) (map[string]int, error) {
			counts := map[string]int{}
			for guid, at := range ports {
				counts[guid] = len(at)
			}
			return counts, nil
		},
		Gauge:     func(e logcache.Envelope) { w.gauges = append(w.gauges, e) },
		Dashboard: func(guid string) string { return "http://console/" + guid },
		Temp:      func() (*os.File, error) { return os.CreateTemp(t.TempDir(), "") }})
	w.offer.Store(&Offer{Names: Names()})
	return w
}

func (w *world) containers() (list []lrp.ContainerStatus) {
	for guid := range w.certified {
		list = append(list, lrp.ContainerStatus{GUID: "container", ProcessGUID: processGUID(guid), Phase: lrp.PhaseRunning, ServerCertificateUntil: time.Now().Add(time.Hour)})
	}
	return list
}

func (w *world) Create(name string, v volume.Spec) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.volumes[name] = v.Bytes
	return nil
}

func (w *world) Remove(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.volumes, name)
	return nil
}

func (w *world) Save(_ context.Context, name string, _ time.Duration, to io.Writer) error {
	_, err := io.WriteString(to, "files of "+name)
	return err
}

func (w *world) Replace(_ context.Context, name string, _ volume.Spec, archive *os.File) error {
	if w.refuses != "" {
		return volume.ErrInUse
	}
	text, err := io.ReadAll(archive)
	w.said = append(w.said, name+" is now "+string(text))
	return err
}

func (w *world) Read(name string, f func(*os.Root) error) error {
	dir := filepath.Join(w.files, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(f(root), root.Close())
}

func (w *world) Used(string) (int64, error) { return 1 << 20, nil }

// attach is a client of a database: it ends with the line that tells it to.
func (w *world) attach(context.Context, string, ...string) (io.ReadWriteCloser, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		var text strings.Builder
		for lines := bufio.NewScanner(theirs); lines.Scan() && lines.Text() != `\q` && lines.Text() != "QUIT"; {
			text.WriteString(lines.Text() + "\n")
		}
		w.mu.Lock()
		w.said = append(w.said, text.String())
		answer := done
		if w.refuses != "" {
			answer = w.refuses
		}
		w.mu.Unlock()
		_, _ = io.WriteString(theirs, answer+"\n") // one who left hears nothing
	}()
	return ours, nil
}

func (w *world) write(do func(tx *store.Tx) error) {
	w.t.Helper()
	if err := w.Store.Write(w.t.Context(), do); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) row(guid string) (i *cf.DataInstance) {
	w.t.Helper()
	err := w.Store.Read(w.t.Context(), func(tx *store.Tx) (err error) {
		i, err = store.DataInstances.Find(tx, guid)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

// runs makes the container of an instance run.
func (w *world) runs(guid string) {
	w.write(func(tx *store.Tx) error {
		return store.ActualLRPs.Insert(tx, lrp.Actual{Key: lrp.Key{ProcessGUID: processGUID(guid)}, Domain: lrp.DomainServices, State: lrp.Running, InstanceGUID: "container", CellID: "C", Address: "10.0.0.2", Since: tx.Now})
	})
}

// ready has an instance that was made.
func (w *world) ready(guid string) {
	w.t.Helper()
	w.ask("PUT", "/v2/service_instances/"+guid+"?accepts_incomplete=true", provisionBody, 202)
	k := &keeper{broker: w.broker, busy: map[string]bool{}}
	w.runs(guid)
	for _, want := range []cf.DataState{cf.DataMaking, cf.DataReady} {
		if err := k.move(w.t.Context(), w.row(guid)); err != nil {
			w.t.Fatal(err)
		}
		if got := w.row(guid).State; got != want {
			w.t.Fatalf("got %s; want %s", got, want)
		}
	}
}

// ask makes a request as the platform does, and returns the answer's body.
func (w *world) ask(method, path, body string, want int) object {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	rec := httptest.NewRecorder()
	w.handler().ServeHTTP(rec, r)
	var o object
	if err := json.Unmarshal(rec.Body.Bytes(), &o); err != nil || o == nil {
		w.t.Fatalf("%s %s: got %q; want an object", method, path, rec.Body)
	}
	if rec.Code != want {
		w.t.Errorf("%s %s: got %d %v; want %d", method, path, rec.Code, o, want)
	}
	return o
}

const (
	provisionBody = `{"service_id": "cupola-postgres", "plan_id": "cupola-postgres-small", "organization_guid": "o", "space_guid": "s", "context": {"instance_name": "a"}}`
	bindBody      = `{"service_id": "cupola-postgres", "plan_id": "cupola-postgres-small", "bind_resource": {"app_guid": "app"}}`
	ids           = "service_id=cupola-postgres&plan_id=cupola-postgres-small"
	async         = "accepts_incomplete=true"
)

// TestInstances holds the specification's statuses.
func TestInstances(t *testing.T) {
	w := newWorld(t)
	const at = "/v2/service_instances/i1"
	for _, c := range []struct {
		method, path, body string
		want               int
		code               any
	}{
		{"GET", at + "/last_operation", "", 410, nil},
		{"GET", at, "", 404, nil},
		{"DELETE", at + "?" + async + "&" + ids, "", 410, nil},
		{"DELETE", at + "?" + async, "", 400, nil},
		{"PUT", at, provisionBody, 422, "AsyncRequired"},
		{"PUT", at + "?" + async, `[`, 400, nil},
		{"PUT", at + "?" + async, strings.Replace(provisionBody, "-small", "-huge", 1), 400, nil},
		{"PUT", at + "?" + async, strings.Replace(provisionBody, "{", `{"parameters": {"a": 1}, `, 1), 400, nil},
		{"PUT", "/v2/service_instances/..%2fetc?" + async, provisionBody, 400, nil},
		{"PUT", at + "?" + async, provisionBody, 202, nil},
		{"PUT", at + "?" + async, provisionBody, 202, nil},
		{"PUT", at + "?" + async, strings.Replace(provisionBody, "-small", "-large", 1), 409, nil},
		{"PUT", at + "/service_bindings/b1", bindBody, 422, "ConcurrencyError"},
		{"PATCH", at + "?" + async, `{"service_id": "cupola-postgres"}`, 422, "ConcurrencyError"},
		{"GET", at, "", 404, nil},
		{"DELETE", at + "?" + ids, "", 422, "AsyncRequired"},
		{"DELETE", at + "?" + async + "&" + ids, "", 202, nil},
		{"DELETE", at + "?" + async + "&" + ids, "", 202, nil},
		{"PUT", at + "?" + async, provisionBody, 422, "ConcurrencyError"},
	} {
		if got := w.ask(c.method, c.path, c.body, c.want)["error"]; got != c.code {
			t.Errorf("%s %s: got error %v; want %v", c.method, c.path, got, c.code)
		}
	}
	w.ready("i2")
	const ready = "/v2/service_instances/i2"
	if got := w.ask("PUT", ready+"?"+async, provisionBody, 200)["dashboard_url"]; got != "http://console/i2" {
		t.Errorf("got dashboard %v", got)
	}
	w.ask("PATCH", ready+"?"+async, `{"service_id": "cupola-postgres", "context": {}}`, 200)
	w.ask("PATCH", ready+"?"+async, `{"service_id": "cupola-postgres", "plan_id": "cupola-postgres-large"}`, 422)
	if got := w.ask("GET", ready+"/last_operation", "", 200)["state"]; got != "succeeded" {
		t.Errorf("got state %v", got)
	}
	want := object{"service_id": "cupola-postgres", "plan_id": "cupola-postgres-small", "parameters": object{"tls": "optional"}, "dashboard_url": "http://console/i2"}
	if diff := cmp.Diff(want, w.ask("GET", ready, "", 200)); diff != "" {
		t.Error(diff)
	}
}

func TestBindings(t *testing.T) {
	w := newWorld(t)
	w.ready("i1")
	const at = "/v2/service_instances/i1/service_bindings/b1"
	w.ask("PUT", "/v2/service_instances/none/service_bindings/b1", bindBody, 404)
	w.ask("PUT", at, strings.Replace(bindBody, "-small", "-large", 1), 400)
	w.ask("PUT", at, strings.Replace(bindBody, "{", `{"parameters": {"a": 1}, `, 1), 400)
	w.ask("GET", at, "", 404)
	w.ask("GET", at+"/last_operation", "", 410)
	w.ask("DELETE", at+"?"+ids, "", 410)
	made := w.ask("PUT", at, bindBody, 201)
	if diff := cmp.Diff(made, w.ask("PUT", at, bindBody, 200)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(made, w.ask("GET", at, "", 200)); diff != "" {
		t.Error(diff)
	}
	w.ask("PUT", at, strings.Replace(bindBody, `"app"`, `"other"`, 1), 409)
	c := made["credentials"].(object)
	if c["hostname"] != "i1.services.internal" || c["username"] == c["password"] || !strings.HasPrefix(c["uri"].(string), "postgres://"+c["username"].(string)+":") {
		t.Errorf("got credentials %v", c)
	}
	if last := w.said[len(w.said)-1]; !strings.Contains(last, "PASSWORD '"+c["password"].(string)+"'") {
		t.Errorf("got %q; want the user made", last)
	}
	if got := w.policies(); !slices.Equal(got, []lrp.NetworkPolicy{{Source: "app", Destination: "i1", Protocol: "tcp", FirstPort: 5432, LastPort: 5432}}) {
		t.Errorf("got policies %v", got)
	}
	w.ask("DELETE", at+"?"+ids, "", 200)
	w.ask("DELETE", at+"?"+ids, "", 410)
	if got := w.policies(); len(got) != 0 || !strings.Contains(w.said[len(w.said)-1], "DROP ROLE") {
		t.Errorf("got policies %v and statements %q", got, w.said)
	}
}

func (w *world) policies() (list []lrp.NetworkPolicy) {
	w.write(func(tx *store.Tx) error {
		instances, err := store.DataInstances.All(tx)
		bindings, err2 := store.DataBindings.All(tx)
		list = policies(instances, bindings)
		return errors.Join(err, err2)
	})
	return list
}

// TestARefusalIsNotReadOut has a database that complains with the statement in
// its answer.
func TestARefusalIsNotReadOut(t *testing.T) {
	w := newWorld(t)
	w.ready("i1")
	w.refuses = "ERROR:  disk full\nSTATEMENT: ALTER ROLE x PASSWORD 'secret'"
	ctx, cancel := context.WithTimeout(t.Context(), betweenTry)
	defer cancel()
	err := w.execute(ctx, w.row("i1"), "ALTER ROLE x;\n\\q\n")
	if err == nil || err.Error() != "the server refused: disk full" {
		t.Errorf("got %v", err)
	}
}

func TestAnInstanceGoesWithAllItHas(t *testing.T) {
	w := newWorld(t)
	w.ready("i1")
	w.ask("PUT", "/v2/service_instances/i1/service_bindings/b1", bindBody, 201)
	w.ask("DELETE", "/v2/service_instances/i1?"+async+"&"+ids, "", 202)
	if _, ok := desired(w.row("i1")); ok {
		t.Error("its container is desired still")
	}
	k := &keeper{broker: w.broker, busy: map[string]bool{}}
	if err := k.move(t.Context(), w.row("i1")); err != nil || len(w.volumes) != 1 {
		t.Fatalf("got %v, volumes %v; want it kept while the container is there", err, w.volumes)
	}
	w.write(func(tx *store.Tx) error {
		a, err := store.ActualLRPs.All(tx)
		if err == nil {
			_, err = store.ActualLRPs.Delete(tx, *a[0])
		}
		return err
	})
	if err := k.move(t.Context(), w.row("i1")); err != nil || len(w.volumes) != 0 || w.row("i1") != nil {
		t.Fatalf("got %v, volumes %v, row %v; want nothing left", err, w.volumes, w.row("i1"))
	}
	w.ask("GET", "/v2/service_instances/i1/last_operation", "", 410)
	w.ask("DELETE", "/v2/service_instances/i1/service_bindings/b1?"+ids, "", 410)
}

// TestAPollIsHeld wants news at once, and no answer without them for a while.
func TestAPollIsHeld(t *testing.T) {
	if got := operation(&cf.DataInstance{State: cf.DataFailed, Fault: "why"}).Body; got["state"] != "failed" || got["description"] != "why" {
		t.Errorf("got %v", got)
	}
	w := newWorld(t)
	w.ask("PUT", "/v2/service_instances/i1?"+async, provisionBody, 202)
	got := make(chan object)
	go func() { got <- w.ask("GET", "/v2/service_instances/i1/last_operation", "", 200) }()
	w.write(func(tx *store.Tx) error {
		i, err := store.DataInstances.Get(tx, "i1")
		if err != nil {
			return err
		}
		i.State = cf.DataReady
		return store.DataInstances.Update(tx, i)
	})
	if s := (<-got)["state"]; s != "succeeded" {
		t.Errorf("got %v", s)
	}
}

func TestHosts(t *testing.T) {
	i := &cf.DataInstance{Resource: cf.Resource{GUID: "ABC"}, Service: "postgres", Plan: "small", State: cf.DataReady}
	d, ok := desired(i)
	if !ok || d.Domain != lrp.DomainServices || !d.Volumes[0].Exclusive || len(d.Egress) != 0 {
		t.Fatalf("got %+v", d)
	}
	running := &lrp.Actual{Key: lrp.Key{ProcessGUID: d.ProcessGUID}, State: lrp.Running, Address: "10.0.0.2"}
	for _, c := range []struct {
		actual *lrp.Actual
		want   map[string]string
	}{
		{running, map[string]string{"abc.services.internal": "10.0.0.2"}},
		{&lrp.Actual{Key: running.Key, State: lrp.Claimed}, map[string]string{}},
		{&lrp.Actual{Key: lrp.Key{ProcessGUID: "other"}, State: lrp.Running, Address: "10.0.0.3"}, map[string]string{}},
	} {
		if diff := cmp.Diff(c.want, Hosts([]*cf.DataInstance{i}, []*lrp.Actual{c.actual})); diff != "" {
			t.Error(diff)
		}
	}
}

// TestAnInstanceThatDoesNotStart fails in words that help.
func TestAnInstanceThatDoesNotStart(t *testing.T) {
	w := newWorld(t)
	w.ask("PUT", "/v2/service_instances/i1?"+async, provisionBody, 202)
	k := &keeper{broker: w.broker, busy: map[string]bool{}}
	if err := k.move(t.Context(), w.row("i1")); err != nil {
		t.Fatal(err)
	}
	if err := k.move(t.Context(), w.row("i1")); !errors.Is(err, errNotRunning) {
		t.Fatalf("got %v; want it waited for", err)
	}
	w.write(func(tx *store.Tx) error {
		return store.ActualLRPs.Insert(tx, lrp.Actual{Key: lrp.Key{ProcessGUID: processGUID("i1")}, Domain: lrp.DomainServices, State: lrp.Unclaimed, PlacementError: "insufficient resources: memory", Since: tx.Now})
	})
	old := w.row("i1")
	old.UpdatedAt = old.UpdatedAt.Add(-2 * makeTime)
	if err := k.move(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if i := w.row("i1"); i.State != cf.DataFailed || !strings.HasSuffix(i.Fault, "insufficient resources: memory") {
		t.Errorf("got %s, %q", i.State, i.Fault)
	}
	w.ask("PUT", "/v2/service_instances/i1?"+async, provisionBody, 409)
	w.ask("DELETE", "/v2/service_instances/i1?"+async+"&"+ids, "", 202)
}

// TestUpdateOfAnUnknownService changes nothing of an instance whose service this cupola does not have.
func TestUpdateOfAnUnknownService(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		return store.DataInstances.Insert(tx, &cf.DataInstance{Resource: cf.Resource{GUID: "i"}, Service: "gone", Plan: "tiny", State: cf.DataReady})
	})
	for body, want := range map[string]int{
		`{"service_id": "cupola-gone", "context": {}}`: 200, `{"service_id": "cupola-gone", "plan_id": "cupola-gone-tiny"}`: 200,
		`{"service_id": "cupola-gone", "plan_id": "cupola-gone-large"}`: 422, `{"service_id": "cupola-gone", "parameters": {"point_in_time_recovery": true}}`: 400,
	} {
		w.ask("PATCH", "/v2/service_instances/i?"+async, body, want)
	}
}

func TestWithoutTheStack(t *testing.T) {
	w := newWorld(t)
	w.HasFile = func(string, string) bool { return false }
	got := w.ask("PUT", "/v2/service_instances/i1?"+async, provisionBody, 400)
	if !strings.Contains(got["description"].(string), "cupola broker prepare") {
		t.Errorf("got %v", got)
	}
}

func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(Config{})
		release, err := b.turn(t.Context(), "i")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.turn(ctx, "i"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v; want to have waited in vain", err)
		}
		release()
		if release, err = b.turn(t.Context(), "i"); err != nil {
			t.Fatal(err)
		}
		release()
	})
}

// TestRedisIsRuledByUsers looks at the commands for its client.
func TestRedisIsRuledByUsers(t *testing.T) {
	e := redis{}
	for _, c := range []struct{ statements, want string }{
		{e.setUp(), "PING"}, {e.grant("u1", "pw"), "ACL SETUSER u1 reset on >pw "}, {e.grant("u1", "pw"), " -@admin "},
		{e.revoke("u1"), "ACL DELUSER u1\nACL SAVE\n"},
	} {
		if !strings.Contains(c.statements, c.want) || !strings.HasSuffix(c.statements, "ECHO \""+done+"\"\nQUIT\n") {
			t.Errorf("got %q; want %q in it", c.statements, c.want)
		}
	}
	got := e.credentials(access{host: "h", user: "u", password: "p/w", port: 6379})["uri"]
	if want := "redis://u:p%2Fw@h:6379"; got != want {
		t.Errorf("got %v; want %s", got, want)
	}
}

// TestFilesAreAVolume binds apps, and nothing else.
func TestFilesAreAVolume(t *testing.T) {
	w := newWorld(t)
	w.HasFile = func(string, string) bool { return false } // it needs none
	const files = `{"service_id": "cupola-files", "plan_id": "cupola-files-small"`
	w.ask("PUT", "/v2/service_instances/i1?"+async, files+`}`, 202)
	k := &keeper{broker: w.broker, busy: map[string]bool{}}
	for range 2 {
		if err := k.move(t.Context(), w.row("i1")); err != nil {
			t.Fatal(err)
		}
	}
	if i := w.row("i1"); i.State != cf.DataReady || w.volumes["i1"] != 1<<30 {
		t.Fatalf("got %+v, volumes %v; want it ready", i, w.volumes)
	}
	if _, ok := desired(w.row("i1")); ok {
		t.Error("got a container for it")
	}
	const at = "/v2/service_instances/i1/service_bindings/b1"
	if got := w.ask("PUT", at, files+`}`, 422)["error"]; got != "RequiresApp" {
		t.Errorf("got error %v", got)
	}
	got := w.ask("PUT", at, files+`, "bind_resource": {"app_guid": "app"}}`, 201)["volume_mounts"].([]any)[0].(object)
	want := object{"driver": "cupola", "container_dir": "/var/vcap/data/i1", "mode": "rw", "device_type": "shared", "device": object{"volume_id": "i1", "mount_config": object{}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if p := w.policies(); len(p) != 0 {
		t.Errorf("got policies %v", p)
	}
	w.ask("DELETE", at+"?service_id=cupola-files&plan_id=cupola-files-small", "", 200)
}

// TestTheCatalogIsRight makes the platform's own client read it.
func TestTheCatalogIsRight(t *testing.T) {
	w := newWorld(t)
	srv := httptest.NewServer(w.handler())
	defer srv.Close()
	catalog, err := osb.New(osb.Config{}).Catalog(t.Context(), osb.Broker{URL: srv.URL, Username: "me", Password: "secret"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if faults := catalog.Faults(osb.Known{}); faults != "" {
		t.Errorf("got %s", faults)
	}
	if len(catalog.Services) != len(Names()) {
		t.Errorf("got %d services; want %v", len(catalog.Services), Names())
	}
}
