package cell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/lrp"
	"cupola/runtime/network"

	"github.com/google/go-cmp/cmp"
)

// A daemon that ends leaves its containers running; the next has them.
func TestAdoptRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(t), t.TempDir()
		first := boot(t, m, dir)
		first.Start(web())
		synctest.Wait()
		want := first.Containers()
		first.kill()

		second := boot(t, m, dir)
		defer second.kill()
		synctest.Wait()
		if diff := cmp.Diff(want, second.Containers()); diff != "" {
			t.Error(diff)
		}
		if len(second.reported) != 0 {
			t.Errorf("got %v; want nothing told twice", second.reported)
		}
		if len(m.policies) != 1 {
			t.Errorf("got policies %v; want the container's", m.policies)
		}
		second.Stop("g1")
		if got := second.last(t).Exit; !got.Stopped {
			t.Errorf("got %+v; want stopped", got)
		}
		second.wantNothing(t)
	})
}

// A process beside the first that an earlier daemon had not come to start is
// started by the next.
func TestAdoptBeforeSidecar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(t), t.TempDir()
		m.block = map[string]chan struct{}{"exec": make(chan struct{})}
		first := boot(t, m, dir)
		spec := web()
		spec.Setup, spec.Action = lrp.Action{}, lrp.Codependent(spec.Action, side())
		first.Start(spec)
		synctest.Wait()
		first.kill()
		if n := len(m.running["g1"].sidecars); n != 0 {
			t.Fatalf("got %d processes beside the first; want none yet", n)
		}

		m.block = nil
		second := boot(t, m, dir)
		defer second.kill()
		synctest.Wait()
		if n := len(m.running["g1"].sidecars); n != 1 {
			t.Errorf("got %d processes beside the first; want 1", n)
		}
		if len(second.events) > 0 && second.events[len(second.events)-1].Type == lrp.EventExited {
			t.Errorf("got %v; want no end", second.reported)
		}
		second.Stop("g1")
		second.last(t)
		second.wantNothing(t)
	})
}

// What an earlier daemon began to stop is stopped, for the same reason.
func TestAdoptStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(t), t.TempDir()
		first := boot(t, m, dir)
		spec := web()
		spec.Setup, spec.Action.Run.Args = lrp.Action{}, []string{"deaf"}
		first.Start(spec)
		synctest.Wait()
		first.Stop("g1")
		synctest.Wait()
		first.kill()

		second := boot(t, m, dir)
		defer second.kill()
		want := lrp.Exit{Code: 137, Stopped: true, Reason: "exceeded graceful shutdown interval"}
		if diff := cmp.Diff(want, second.last(t).Exit); diff != "" {
			t.Error(diff)
		}
		second.wantNothing(t)
	})
}

func TestAdoptDead(t *testing.T) {
	tests := []struct {
		name string
		boot string
		exit container.Exit
		want []string
	}{
		{"known", "this boot", container.Exit{Code: 4, Known: true}, []string{"APP/PROC/WEB out: Exit status 4", "event exited APP/PROC/WEB: Exited with status 4"}},
		{"unknown", "this boot", container.Exit{}, []string{"APP/PROC/WEB out: Exit status unknown", "event exited APP/PROC/WEB: Exited with unknown status"}},
		{"of an earlier boot", "another boot", container.Exit{}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, dir := newMachine(t), t.TempDir()
				first := boot(t, m, dir)
				first.Start(web())
				synctest.Wait()
				first.kill()
				m.end("g1", tt.exit)
				rec, err := readRecord(filepath.Join(dir, "g1"))
				rec.Boot = tt.boot
				if err := errors.Join(err, writeRecord(filepath.Join(dir, "g1"), rec)); err != nil {
					t.Fatal(err)
				}
				second := boot(t, m, dir)
				defer second.kill()
				synctest.Wait()
				var reported []string
				for _, line := range second.reported {
					if !strings.HasPrefix(line, "CELL") {
						reported = append(reported, line)
					}
				}
				if diff := cmp.Diff(tt.want, reported); diff != "" {
					t.Error(diff)
				}
				second.wantNothing(t)
			})
		})
	}
}

func TestForeignLeftovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(t), t.TempDir()
		if _, err := m.Start(t.Context(), container.Spec{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		if _, err := (fakeNetwork{m}).Acquire(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		m.roots["c"] = true
		m.memories["e"] = map[string][]byte{}
		m.policies = []network.Policy{{}}
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "d"), 0o700), os.WriteFile(filepath.Join(dir, "d", recordFile), []byte("{"), 0o600)); err != nil {
			t.Fatal(err)
		}
		look, err := New(Config{Dir: dir, Containers: m, Network: fakeNetwork{m}, RootFS: fakeRoots{m}, Files: fakeFiles{m}, Users: fakeUsers{m}})
		if err != nil {
			t.Fatal(err)
		}
		leaks, err := look.Leaks(t.Context())
		if diff := cmp.Diff([]string{"a: container", "b: network", "c: root filesystem", "d: state directory", "e: memory"}, leaks); diff != "" || err != nil {
			t.Error(diff, err)
		}
		d := boot(t, m, dir)
		defer d.kill()
		d.wantNothing(t)
	})
}

// Killed at any of its calls, before it has its effect or after it, a daemon
// leaves nothing that the next does not adopt or clear away, and the end of what
// has started is reported.
func TestKilledAnywhere(t *testing.T) {
	idle := task()
	idle.Action = lrp.Serial(lrp.Run{Path: "/bin/before"}.Action(), idle.Action)
	idle.GUID = "t2"
	for _, spec := range []lrp.Container{web(), task(), idle} {
		for n := 2; n <= 24; n++ { // the first is adopting nothing
			for _, early := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%d/early %t", spec.GUID, n, early), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { killAt(t, spec, n, early) })
				})
			}
		}
	}
}

func killAt(t *testing.T, spec lrp.Container, n int, early bool) {
	m, dir, copied := newMachine(t), t.TempDir(), filepath.Join(t.TempDir(), "state")
	spec.Action = lrp.Codependent(spec.Action, side())
	m.killAt, m.early = n, early
	m.onKill = func() {
		if err := copyTree(dir, copied); err != nil {
			t.Error(err)
		}
	}
	first := boot(t, m, dir)
	first.Start(spec)
	synctest.Wait()
	if err := (fakeRoots{m}).put(spec.GUID, "/tmp/result.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if c := m.running[spec.GUID]; c != nil && m.host.daemon == 0 {
		m.end(spec.GUID, container.Exit{Code: 1, Known: true})
	}
	synctest.Wait()
	killed := m.host.daemon != 0
	if !killed {
		m.onKill() // the calls are over: it is killed at rest
	}
	first.kill()
	rec, err := readRecord(filepath.Join(copied, spec.GUID))
	started := err == nil && !rec.StartedAt.IsZero() && !rec.Reported

	m.killAt = 0
	second := boot(t, m.successor(), copied)
	defer second.kill()
	synctest.Wait()
	leaks, err := second.Leaks(t.Context())
	if len(leaks) > 0 || err != nil {
		t.Errorf("got leaks %v, error %v; want none", leaks, err)
	}
	if c := m.running[spec.GUID]; c != nil {
		m.end(spec.GUID, container.Exit{Code: 1, Known: true})
	}
	<-time.After(2 * sweepInterval)
	synctest.Wait()
	if started && (len(second.events) == 0 || second.events[len(second.events)-1].Type != lrp.EventExited) {
		t.Errorf("got %v after %v; want the exit told", second.reported, rec)
	}
	second.wantNothing(t)
}

func copyTree(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	records, err := filepath.Glob(filepath.Join(from, "*", recordFile))
	if err != nil {
		return err
	}
	guids, err := os.ReadDir(from)
	for _, g := range guids {
		err = errors.Join(err, os.MkdirAll(filepath.Join(to, g.Name()), 0o700))
	}
	for _, path := range records {
		content, readErr := os.ReadFile(path)
		target := filepath.Join(to, filepath.Base(filepath.Dir(path)), recordFile)
		err = errors.Join(err, readErr, os.WriteFile(target, content, 0o600))
	}
	return err
}
