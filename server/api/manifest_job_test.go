package api

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/store"
)

// worker is the API's other half: what works on jobs in a daemon.
func (w *world) worker() *Server {
	return New(context.Background(), w.config(nil, slog.New(slog.DiscardHandler)))
}

// runJobs runs a worker until the end of the test, or until stop is called.
func (w *world) runJobs(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	s := w.worker()
	done.Go(func() {
		if err := s.Jobs.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = func() { cancel(); done.Wait() }
	t.Cleanup(stop)
	return stop
}

// longest notes the transactions that hold the writer for longest.
type longest struct {
	mu   sync.Mutex
	most store.Held
	n    int
}

func (w *world) watchWrites() *longest {
	l := &longest{}
	w.store.OnWrite(func(h store.Held) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.n++
		l.most.Statements, l.most.Time = max(l.most.Statements, h.Statements), max(l.most.Time, h.Time)
	})
	return l
}

func (l *longest) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d transactions, the longest of %d statements and %v", l.n, l.most.Statements, l.most.Time)
}

func (l *longest) statements() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most.Statements
}

func (l *longest) transactions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// maxHeld bounds the statements of one transaction: none of them takes longer
// than some 100 µs, so that is about 35 ms.
const maxHeld = 350

// manyApps is a manifest of n apps, each with its route, a process and variables
// of kinds that YAML tells apart.
func manyApps(n int, more string) string {
	var b strings.Builder
	b.WriteString("applications:\n")
	for i := range n {
		fmt.Fprintf(&b, "- {name: many-%d, env: {N: %d, BIG: 12345678901, YES: true, TEXT: \"1\"}, instances: 2, memory: 64M, default-route: true%s}\n", i, i, more)
	}
	return b.String()
}

func (w *world) sendManifest(t *testing.T, user, manifest string) (job string) {
	t.Helper()
	got := w.ask(user, "POST", "/v3/spaces/space-1/actions/apply_manifest", manifest, "application/x-yaml")
	if got.status != 202 {
		t.Fatalf("got %d %s; want 202", got.status, got.text)
	}
	return guidOf(got)
}

func (w *world) jobState(t *testing.T, job string) (state, text string) {
	t.Helper()
	got := w.ask("admin", "GET", "/v3/jobs/"+job, "", "")
	m, _ := got.json.(map[string]any)
	state, _ = m["state"].(string)
	return state, got.text
}

// jobEnds waits until a job is in a state.
func (w *world) jobEnds(t *testing.T, job, want string) (text string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		state, text := w.jobState(t, job)
		if state == want {
			return text
		}
		if state != "PROCESSING" || time.Now().After(deadline) {
			t.Fatalf("got %s; want it %s", text, want)
		}
	}
}

func (w *world) total(path string) int {
	list := w.ask("admin", "GET", path, "", "").json.(map[string]any)
	return int(list["pagination"].(map[string]any)["total_results"].(float64))
}

// A large manifest is applied in many short transactions, by a job that another
// daemon takes up where one was killed.
func TestLargeManifestIsCut(t *testing.T) {
	const apps = 120
	w := newWorld(t)
	held := w.watchWrites()
	job := w.sendManifest(t, "space_developer", manyApps(apps, ""))
	if state, text := w.jobState(t, job); state != "PROCESSING" {
		t.Errorf("got %s; want the job under way", text)
	}
	if n := w.total("/v3/apps?names=many-0,many-119"); n != 2 {
		t.Errorf("%d of 2 apps were created before the answer", n)
	}
	s := w.worker()
	for range apps / 2 { // and then it is killed
		if more, err := s.Jobs.Advance(context.Background(), job); err != nil || !more {
			t.Fatalf("more: %v, err: %v", more, err)
		}
	}
	if n := w.total("/v3/routes?space_guids=space-1"); n != apps/2+1 {
		t.Errorf("got %d routes; want half of the apps', and the one that was there", n)
	}
	w.runJobs(t)
	w.jobEnds(t, job, "COMPLETE")
	if n := w.total("/v3/routes?space_guids=space-1"); n != apps+1 {
		t.Errorf("got %d routes; want %d", n, apps+1)
	}
	_, m := w.manifestOf(t, "many-119")
	app := m["applications"].([]any)[0].(map[string]any)
	if got, want := fmt.Sprint(app["env"], app["memory"], app["instances"]), ""; !strings.Contains(got, "N:119") || !strings.Contains(got, "BIG:12345678901") || !strings.Contains(got, "TEXT:1") {
		t.Errorf("got %s%s; want what the manifest has", got, want)
	}
	if held.statements() > maxHeld {
		t.Errorf("%s; want at most %d statements", held, maxHeld)
	}
	t.Log(held)
}

// A manifest whose one app has hundreds of routes is cut, too, and every part is
// as the whole: with the variable that a date is, options and protocols.
func TestLongListsAreCut(t *testing.T) {
	const routes = 150
	var b strings.Builder
	b.WriteString("applications:\n- name: hello\n  env: {A: b}\n  routes:\n")
	for i := range routes {
		fmt.Fprintf(&b, "  - {route: r-%d.apps.test, protocol: http2, options: {loadbalancing: least-connection}}\n", i)
	}
	w := newWorld(t)
	held := w.watchWrites()
	job := w.sendManifest(t, "space_developer", b.String())
	w.runJobs(t)
	w.jobEnds(t, job, "COMPLETE")
	if n := w.total("/v3/apps/app-1/routes"); n != routes+1 {
		t.Errorf("got %d routes; want %d", n, routes+1)
	}
	w.run(t, []step{{method: "GET", path: "/v3/routes?hosts=r-149", status: 200,
		want: `{"resources": [{"options": {"loadbalancing": "least-connection"}, "destinations": [{"protocol": "http2"}]}]}`}})
	if held.statements() > maxHeld {
		t.Errorf("%s; want at most %d statements", held, maxHeld)
	}
	t.Log(held)
}

// What is wrong with one app fails the job in Cloud Controller's words. What was
// applied before it stays, and nothing after it is applied.
func TestFailedPartEndsTheJob(t *testing.T) {
	w := newWorld(t)
	text := manyApps(40, "")
	text = strings.Replace(text, "name: many-30,", "name: many-30, services: [none],", 1)
	job := w.sendManifest(t, "space_developer", text)
	w.runJobs(t)
	if got := w.jobEnds(t, job, "FAILED"); !strings.Contains(got, `"detail":"For application 'many-30': Service instance 'none' not found"`) {
		t.Errorf("got %s", got)
	}
	if n := w.total("/v3/apps?space_guids=space-1"); n != 41 {
		t.Errorf("got %d apps; want all that the request created", n)
	}
	if n := w.total("/v3/routes?space_guids=space-1"); n != 31 {
		t.Errorf("got %d routes; want those of the apps before the fault", n)
	}
	w.write(func(tx *store.Tx) error {
		if part, err := store.JobParts.Next(tx, job); err != nil || part != nil {
			t.Errorf("%v is left to do: %v", part, err)
		}
		return nil
	})
}

// What a job needs can be gone when its turn comes.
func TestJobOfWhatIsGone(t *testing.T) {
	for _, tt := range []struct {
		name, method, path, want string
	}{
		{"app", "DELETE", "/v3/apps/{app}", `"code":10010,"title":"CF-ResourceNotFound","detail":"App with guid '{app}' not found"`},
		{"space", "DELETE", "/v3/spaces/space-1", `"title":"CF-ResourceNotFound"`},
		{"role", "DELETE", "/v3/roles/role-space_developer", `"title":"CF-NotAuthorized"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			job := w.sendManifest(t, "space_developer", manyApps(30, ""))
			w.saved["app"] = firstGUID(t, w.ask("admin", "GET", "/v3/apps?names=many-29", "", ""))
			w.run(t, []step{{method: tt.method, path: tt.path, status: 202}})
			w.runJobs(t)
			if got := w.jobEnds(t, job, "FAILED"); !strings.Contains(got, w.fill(tt.want)) {
				t.Errorf("got %s; want %s", got, w.fill(tt.want))
			}
		})
	}
}

// One user's large manifest does not delay another's, nor any write.
func TestManifestsTakeTurns(t *testing.T) {
	w := newWorld(t)
	large := w.sendManifest(t, "space_developer", manyApps(200, ""))
	small := w.sendManifest(t, "admin", strings.ReplaceAll(manyApps(25, ""), "many-", "few-"))
	s := w.worker()
	for range 26 {
		if _, err := s.Jobs.Once(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if state, text := w.jobState(t, small); state != "COMPLETE" {
		t.Errorf("after as many rounds as it has apps: %s", text)
	}
	if state, text := w.jobState(t, large); state != "PROCESSING" {
		t.Errorf("got %s; want the large one under way", text)
	}
}

// The rows of a job hold secrets; the database file does not show them.
func TestJobPartsAreSealed(t *testing.T) {
	w := newWorld(t)
	w.sendManifest(t, "space_developer", strings.ReplaceAll(manyApps(30, ""), `TEXT: "1"`, "TEXT: hunter2-is-the-secret"))
	for _, name := range []string{store.DatabaseFile, store.DatabaseFile + "-wal"} {
		text, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("hunter2-is-the-secret")) {
			t.Errorf("%s has it", name)
		}
	}
}
