package machine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a machine whose kernel says what the files say.
func fake(t *testing.T, files map[string]string) *Machine {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := New(Config{DataDir: root, Database: filepath.Join(root, "db", "cupola.db"), Version: "1.2.3", Started: time.Unix(0, 0),
		Containers: func() int { return 7 }, Doctor: []string{"doctor"}, Log: slog.New(slog.DiscardHandler)})
	m.root = root
	return m
}

func TestState(t *testing.T) {
	m := fake(t, map[string]string{
		"proc/sys/kernel/osrelease":                 "6.1.0-test\n",
		"proc/loadavg":                              "0.10 0.20 0.30 1/100 5\n",
		"proc/meminfo":                              "MemTotal:        2048 kB\nMemAvailable:    1024 kB\nSwapTotal: 4 kB\nSwapFree: 2 kB\n",
		"proc/self/status":                          "Name:\tcupola\nVmRSS:\t  512 kB\n",
		"proc/stat":                                 "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 1 1 1\n",
		"proc/pressure/memory":                      "some avg10=1.50 avg60=2.00 avg300=3.25 total=9\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=1\n",
		"proc/pressure/io":                          "nonsense\n",
		"sys/fs/cgroup/cgroup.controllers":          "cpu memory",
		"db/cupola.db":                              "12345",
		"db/cupola.db-wal":                          "12",
		"db/backups/cupola-20260102T030405Z.db.zst": "copy",
	})
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/v1/machine", nil))
	var s State
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if s.Version != "1.2.3" || s.Kernel != "6.1.0-test" || s.Cgroup != 2 || s.Containers != 7 || s.CPUs < 1 || s.Goroutines < 1 || !slices.Equal(s.Load, []float64{0.1, 0.2, 0.3}) {
		t.Errorf("got %+v", s)
	}
	if want := (Memory{2048 << 10, 1024 << 10, 4 << 10, 2 << 10, 512 << 10}); s.Memory != want {
		t.Errorf("got %+v; want %+v", s.Memory, want)
	}
	if want := []Pressure{{"some", 1.5, 2, 3.25}, {"full", 0.5, 0, 0}}; !slices.Equal(s.Pressure["memory"], want) || s.Pressure["cpu"] != nil {
		t.Errorf("got %+v; want %+v", s.Pressure, want)
	}
	if s.Database != (Database{5, 2}) || s.Backup == nil || s.Backup.Kept != 1 || s.Backup.Bytes != 4 || s.Backup.MadeAt.Year() != 2026 {
		t.Errorf("got %+v, %+v", s.Database, s.Backup)
	}
	if s.Disk.Path != m.DataDir || s.Disk.Total == 0 || s.Disk.Available > s.Disk.Total {
		t.Errorf("got %+v", s.Disk)
	}
}

// A kernel that tells nothing leaves gaps, and no error.
func TestStateOfSilentKernel(t *testing.T) {
	s := fake(t, nil).State(t.Context())
	if s.Cgroup != 1 || len(s.Load) != 0 || len(s.Pressure) != 0 || s.Backup != nil || s.Memory != (Memory{}) || s.CPUUsed != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestCPUUsedIsSinceTheLastRequest(t *testing.T) {
	m := fake(t, map[string]string{"proc/stat": "cpu  400 0 0 600 0 0 0 0 0 0\n"})
	m.usage.at, m.usage.last = time.Now().Add(-time.Second), ticks{all: 800, idle: 500}
	if got := m.cpuUsed(t.Context()); got != 0.5 {
		t.Errorf("got %v; want 0.5", got)
	}
	if got := m.cpuUsed(t.Context()); got != 0.5 { // too soon to measure: the last value
		t.Errorf("got %v; want 0.5", got)
	}
}

func checked(m *Machine) (int, string) {
	w := httptest.NewRecorder()
	m.Checks(w, httptest.NewRequest("GET", "/v1/machine/checks", nil))
	return w.Code, w.Body.String()
}

// However many ask, the checks run once at a time, and not again soon.
func TestChecksRunOnceAtATime(t *testing.T) {
	m := fake(t, nil)
	runs, running := 0, make(chan struct{}, 1)
	m.run = func(context.Context, []string) ([]byte, error) {
		select {
		case running <- struct{}{}:
			defer func() { <-running }()
		default:
			t.Error("two runs at once")
		}
		runs++
		return []byte(`[{"name":"disk","level":"fail","detail":"full","fix":"rm"}]` + "\n"), nil
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if code, text := checked(m); code != http.StatusOK || !strings.Contains(text, `"results":[{"name":"disk","level":"fail","detail":"full","fix":"rm"}]`) {
				t.Errorf("got %d %s", code, text)
			}
		})
	}
	all.Wait()
	if runs != 1 {
		t.Errorf("got %d runs; want 1", runs)
	}
	m.checks.last.CheckedAt = time.Now().Add(-checkAge)
	checked(m)
	if runs != 2 {
		t.Errorf("got %d runs; want 2 once the result is old", runs)
	}
}

// A client that leaves does not end the run: the next one gets its result.
func TestChecksOutliveTheirClient(t *testing.T) {
	m := fake(t, nil)
	began, goOn := make(chan struct{}), make(chan struct{})
	runs := 0
	m.run = func(ctx context.Context, _ []string) ([]byte, error) {
		runs++
		close(began)
		<-goOn
		return []byte("[]"), ctx.Err()
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := m.check(ctx)
		left <- err
	}()
	<-began
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want that the client left", err)
	}
	close(goOn)
	if code, text := checked(m); code != http.StatusOK || !strings.Contains(text, `"results":[]`) || runs != 1 {
		t.Errorf("got %d %s after %d runs", code, text, runs)
	}
}

// A run that fails is no result: the next request runs the checks again.
func TestChecksThatFail(t *testing.T) {
	m := fake(t, nil)
	for _, c := range []struct {
		text string
		err  error
	}{{"", errors.New("killed")}, {"panic: x", nil}, {`{"name": "no list"}`, nil}} {
		m.run = func(context.Context, []string) ([]byte, error) { return []byte(c.text), c.err }
		if code, text := checked(m); code != http.StatusInternalServerError || strings.Contains(text, "killed") {
			t.Errorf("%q, %v: got %d %s", c.text, c.err, code, text)
		}
	}
}

func TestRunCommand(t *testing.T) {
	for _, c := range []struct {
		script, want string
		fails        bool
	}{{"echo []", "[]\n", false}, {"echo []; exit 1", "[]\n", false}, {"exit 1", "", true}, {"echo []; exit 2", "", true}, {"yes", "", true}} {
		got, err := runCommand(t.Context(), []string{"sh", "-c", c.script})
		if string(got) != c.want || (err != nil) != c.fails {
			t.Errorf("%s: got %.20q, %v", c.script, got, err)
		}
	}
}
