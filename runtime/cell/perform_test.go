package cell

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/container"
	"cupola/runtime/health"
	"cupola/runtime/lrp"
)

// act runs a program by its name.
func act(name string) lrp.Action { return lrp.Run{Path: name}.Action() }

func code(n int) container.Exit { return container.Exit{Code: n, Known: true} }

// end is the end of a process that a test brings about.
type end struct {
	program string
	exit    container.Exit
}

// Actions do what Diego's do, and end in its words.
func TestActions(t *testing.T) {
	good := code(0)
	tests := []struct {
		name          string
		setup, action lrp.Action
		ends          []end // one after the other
		programs      string
		want          lrp.Exit
	}{
		{"one run", lrp.Action{}, act("a"), []end{{"a", code(0)}}, "a", lrp.Exit{}},
		{"serial", lrp.Action{}, lrp.Serial(act("a"), act("b")), []end{{"a", good}, {"b", code(3)}}, "idle a b", lrp.Exit{Code: 3, Failed: true, Reason: "STG: Exited with status 3"}},
		{"serial stops", lrp.Action{}, lrp.Serial(act("a"), act("b")), []end{{"a", code(1)}}, "idle a", lrp.Exit{Code: 1, Failed: true, Reason: "STG: Exited with status 1"}},
		{"parallel waits", lrp.Action{}, lrp.Parallel(act("a"), act("b")), []end{{"a", code(1)}, {"b", code(2)}}, "idle a b", lrp.Exit{Code: 2, Failed: true, Reason: "STG: Exited with status 1; STG: Exited with status 2"}},
		{"codependent", lrp.Action{}, lrp.Codependent(act("a"), act("b")), []end{{"b", good}}, "a b", lrp.Exit{Code: 143, Failed: true, Reason: "Codependent step exited"}},
		{"codependent fails", lrp.Action{}, lrp.Codependent(act("a"), act("b")), []end{{"b", code(7)}}, "a b", lrp.Exit{Code: 143, Failed: true, Reason: "STG: Exited with status 7"}},
		{"try", lrp.Action{}, lrp.Serial(lrp.Tried(act("a")), act("b")), []end{{"a", code(1)}, {"b", good}}, "idle a b", lrp.Exit{}},
		{"timeout", lrp.Action{}, lrp.Within(2*time.Second, act("a")), nil, "a", lrp.Exit{Code: 143, Failed: true, Reason: "exceeded 2s timeout"}},
		{"timeout of a part", lrp.Action{}, lrp.Serial(lrp.Tried(lrp.Within(2*time.Second, act("a"))), act("b")), []end{{"", good}, {"b", good}}, "idle a b", lrp.Exit{}},
		{"setup", act("s"), act("a"), []end{{"s", good}, {"a", good}}, "idle s a", lrp.Exit{}},
		{"setup fails", act("s"), act("a"), []end{{"s", code(9)}}, "idle s", lrp.Exit{Code: 9, Failed: true, Reason: "STG: Exited with status 9"}},
		{"nothing to run", lrp.Action{}, lrp.Download{Source: lrp.Blobbed("x"), To: "/x"}.Action(), nil, "idle", lrp.Exit{}},
		{"download fails", lrp.Action{}, lrp.Download{Source: lrp.Blobbed("missing"), To: "/x"}.Action(), nil, "idle", lrp.Exit{Failed: true, Reason: "Downloading failed"}},
		{"named download fails", lrp.Action{}, lrp.Download{Source: lrp.Blobbed("missing"), Artifact: "it", To: "/x"}.Action(), nil, "idle", lrp.Exit{Failed: true, Reason: "Downloading it failed"}},
		{"upload fails", lrp.Action{}, lrp.Serial(act("a"), lrp.Upload{Artifact: "it", From: "/none", To: "blob:it"}.Action()), []end{{"a", good}}, "a", lrp.Exit{Failed: true, Reason: "Failed to establish stream from container for it"}},
		{"source of its own", lrp.Action{}, lrp.Action{Serial: &lrp.Group{LogSource: "X", Actions: []lrp.Action{act("a")}}}, []end{{"a", code(1)}}, "a", lrp.Exit{Code: 1, Failed: true, Reason: "X: Exited with status 1"}},
		{"out of memory", lrp.Action{}, lrp.Parallel(act("a"), act("b")), []end{{"b", good}, {"a", container.Exit{Code: 137, Signal: 9, OOM: true, Known: true}}}, "idle a b", lrp.Exit{Code: 137, Failed: true, Reason: "STG: Exited with status 137 (out of memory)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := boot(t, newMachine(t), t.TempDir())
				defer d.kill()
				spec := task()
				spec.ResultFile, spec.Setup, spec.Action = "", tt.setup, tt.action
				programs := ""
				d.Start(spec)
				synctest.Wait()
				for _, e := range tt.ends {
					if e.program == "" {
						<-time.After(5 * time.Second)
					} else {
						programs = strings.Join(d.m.programs("t1"), " ")
						d.m.finish(t, "t1", e.program, e.exit)
					}
					synctest.Wait()
				}
				if programs == "" && len(d.m.running) > 0 {
					programs = strings.Join(d.m.programs("t1"), " ")
				}
				if diff := cmp.Diff(tt.want, d.last(t).Exit); diff != "" {
					t.Error(diff)
				}
				if programs != "" && strings.Join(sorted(programs), " ") != strings.Join(sorted(tt.programs), " ") {
					t.Errorf("got programs %s; want %s", programs, tt.programs)
				}
				d.wantNothing(t)
			})
		})
	}
}

// A process that could not be started because the container's first one had just
// ended is no reason; one that could not for another is.
func TestNoFaultOfItsOwn(t *testing.T) {
	for _, first := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := boot(t, newMachine(t), t.TempDir())
			defer d.kill()
			d.m.fail["exec"] = errors.New("no such namespace")
			spec := task()
			spec.ResultFile, spec.Action = "", lrp.Codependent(act("a"), act("b"))
			d.Start(spec)
			synctest.Wait()
			want := "failed to run container: no such namespace"
			if first {
				want = "Codependent step exited"
				d.m.finish(t, "t1", "a", code(0))
			}
			<-time.After(time.Second)
			if got := d.last(t).Exit.Reason; got != want {
				t.Errorf("got %q; want %q", got, want)
			}
		})
	}
}

func TestEmitProgress(t *testing.T) {
	progress := func(a lrp.Action) lrp.Action {
		return lrp.Action{EmitProgress: &lrp.EmitProgress{Action: a, Start: "begins", Success: "done", FailurePrefix: "no good", LogSource: "P"}}
	}
	for exit, want := range map[int]string{0: "P out: done", 4: "P err: no good: P: Exited with status 4"} {
		synctest.Test(t, func(t *testing.T) {
			d := boot(t, newMachine(t), t.TempDir())
			defer d.kill()
			spec := task()
			spec.ResultFile, spec.Action = "", progress(act("a"))
			d.Start(spec)
			synctest.Wait()
			d.m.finish(t, "t1", "a", code(exit))
			d.last(t)
			reported := strings.Join(d.reported, "\n")
			if !strings.Contains(reported, "P out: begins\n") || !strings.Contains(reported, want+"\n") {
				t.Errorf("got %s; want %q", reported, want)
			}
		})
	}
}

// A daemon goes on where another was, in the middle of a program.
func TestProgramGoesOn(t *testing.T) {
	upload := lrp.Upload{Artifact: "it", From: "/it", To: "blob:it"}.Action()
	program := lrp.Serial(act("a"), lrp.Parallel(act("b"), act("c")), upload)
	for killedAfter := range 4 {
		synctest.Test(t, func(t *testing.T) {
			m, dir := newMachine(t), t.TempDir()
			d := boot(t, m, dir)
			spec := task()
			spec.ResultFile, spec.Action = "", program
			d.Start(spec)
			synctest.Wait()
			if err := (fakeRoots{m}).put("t1", "/it", []byte("x")); err != nil {
				t.Fatal(err)
			}
			for n, name := range []string{"a", "b", "c", ""} {
				if n == killedAfter {
					d.kill()
					if name != "" && n%2 == 1 {
						m.finish(t, "t1", name, code(0)) // while no daemon runs
						name = ""
					}
					d = boot(t, m, dir)
				}
				if name != "" {
					m.finish(t, "t1", name, code(0))
				}
				synctest.Wait()
			}
			defer d.kill()
			got := d.events
			if killedAfter < 3 {
				last := d.last(t)
				if diff := cmp.Diff([]lrp.Blob{{Name: "it", Digest: "x", Size: 1}}, last.Outputs); diff != "" || last.Exit.Failed {
					t.Errorf("killed after %d: %+v %s", killedAfter, last.Exit, diff)
				}
			} else if len(got) > 0 {
				t.Errorf("got %v; want nothing told twice", got)
			}
			starts := 0
			for _, call := range m.calls {
				if strings.HasPrefix(call, "exec") {
					starts++
				}
			}
			if starts != 3 {
				t.Errorf("killed after %d: got %d processes; want each once", killedAfter, starts)
			}
			d.wantNothing(t)
		})
	}
}

// A monitor is asked until it is content, and then from time to time.
func TestMonitor(t *testing.T) {
	tests := []struct {
		name   string
		before int // of the monitor's exit codes
		after  int
		want   string
		event  bool
	}{
		{"never healthy", 1, 1, "Instance never healthy after 4s: APP/PROC/WEB: Exited with status 1", false},
		{"becomes unhealthy", 0, 1, "Instance became unhealthy: APP/PROC/WEB: Exited with status 1", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t)
				m.auto = map[string]container.Exit{"check": code(tt.before)}
				d := boot(t, m, t.TempDir())
				defer d.kill()
				d.Cell.check = health.Run
				spec := web()
				spec.Monitor, spec.StartTimeout = act("check"), 4*time.Second
				d.Start(spec)
				<-time.After(3 * time.Second)
				if got := d.Containers()[0].Phase == lrp.PhaseRunning; got != tt.event {
					t.Errorf("got running %t; want %t", got, tt.event)
				}
				m.mu.Lock()
				m.auto["check"] = code(tt.after)
				m.mu.Unlock()
				if tt.event {
					// The action has daemonised itself.
					m.finish(t, "g1", "/bin/web", code(0))
					<-time.After(20 * time.Second)
					if got := d.Containers(); len(got) != 1 || got[0].Phase != lrp.PhaseRunning {
						t.Errorf("got %+v; want it running after a good end of its action", got)
					}
				}
				if got := d.last(t).Exit.Reason; got != tt.want {
					t.Errorf("got %q; want %q", got, tt.want)
				}
				d.wantNothing(t)
			})
		})
	}
}

func TestSidecarField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir())
		defer d.kill()
		spec := web()
		spec.Sidecars = []lrp.Sidecar{{Action: act("side"), MemoryMB: 16}}
		d.Start(spec)
		synctest.Wait()
		d.m.finish(t, "g1", "side", code(0))
		if got := d.last(t).Exit; got.Reason != "" || got.Code != 143 || !got.Failed {
			t.Errorf("got %+v; want the end of the sidecar", got)
		}
	})
}

func TestPrivilegedIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir())
		defer d.kill()
		spec := web()
		spec.Privileged = true
		d.Start(spec)
		if got := d.last(t).Exit.Reason; got != "failed to create container: privileged containers are not supported" {
			t.Errorf("got %q", got)
		}
		d.wantNothing(t)
	})
}

func TestImageIsPulled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := boot(t, newMachine(t), t.TempDir())
		defer d.kill()
		spec := web()
		spec.RootFS, spec.ImageUsername, spec.ImagePassword = "docker:///foo/bar#baz", "me", "s3cr3t"
		d.Start(spec)
		synctest.Wait()
		if got := d.m.mounts; len(got) != 1 || !strings.HasSuffix(got[0].Stack, "@sha256:"+strings.Repeat("0", 64)) {
			t.Errorf("got %+v; want the image by its digest", got)
		}
		if calls := strings.Join(d.m.calls, "\n"); !strings.Contains(calls, "pull docker://docker.io/foo/bar:baz as me") {
			t.Errorf("got %s; want a pull with credentials", calls)
		}
	})
}

func sorted(words string) []string {
	return slices.Sorted(strings.FieldsSeq(words))
}
