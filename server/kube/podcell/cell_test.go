package podcell

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cupola/runtime/lrp"
	"cupola/server/cells"
	"cupola/server/kube"
	"cupola/server/kube/apply"
)

const guid = "i-1"

var podResource = schema.GroupResource{Resource: "pods"}

// inBubble runs a test in which time passes at once.
func inBubble(t *testing.T, f func(t *testing.T, c *cluster, w *world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		w := run(t, c, dir)
		synctest.Wait()
		f(t, c, w)
	})
}

func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// phase is that of the only container; "" of none.
func (w *world) phase() lrp.Phase {
	for _, s := range w.Containers() {
		return s.Phase
	}
	return ""
}

func TestInstanceLives(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		w.node(kube.Object{"metadata": doc{"name": "n"}, "status": doc{"conditions": []any{doc{"type": "Ready", "status": "True"}}, "allocatable": doc{"cpu": "2", "memory": "512Mi"}}})
		w.Start(container(guid))
		synctest.Wait()
		if got := strings.Join(c.left(), " "); got != "i-1 i-1-env i-1-files" || w.phase() != lrp.PhaseCreating {
			t.Errorf("the cluster has %s, and the instance is %s", got, w.phase())
		}
		c.says(guid, "hello")
		c.begins(guid, false, false)
		wait(time.Second)
		if w.phase() != lrp.PhaseStarting {
			t.Errorf("an instance that was never well is %s", w.phase())
		}
		c.begins(guid, true, true)
		wait(time.Second)
		if s := w.Containers()[0]; s.Phase != lrp.PhaseRunning || !s.Ready || s.Address != "10.0.0.9" || s.CellID != "edge" || s.FilesDigest == "" {
			t.Errorf("got %+v", s)
		}
		if s, ok := w.Stats(guid); !ok || s.CPUPercent != 25 || s.MemoryBytes != 42 || s.DiskBytes != 7 || s.MemoryQuota != 64<<20 || s.CPU != 3*time.Second {
			t.Errorf("got %+v, %t", s, ok)
		}
		if m := w.Measure(); len(m) != 1 || m[0].GUID != guid || m[0].EntitledCPU != 0.25 || m[0].Entitlement != 1 || m[0].Log.GUID != "app" || m[0].Log.Tags["source_type"] != "" {
			t.Errorf("got %+v", m)
		}
		c.begins(guid, true, false)
		wait(time.Second)
		c.says(guid, "bye")
		c.exits(guid, 7)
		wait(10 * time.Second)
		const want = `CELL: Cell edge creating container for instance i-1
APP/PROC/WEB: hello
CELL: Cell edge successfully created container for instance i-1
event running at 10.0.0.9
event ready
event not-ready
APP/PROC/WEB: bye
APP/PROC/WEB: Exit status 7
event exited 7 failed=true stopped=false APP/PROC/WEB: Exited with status 7
CELL: Cell edge successfully destroyed container for instance i-1`
		if got := w.take(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if len(c.left()) > 0 || len(w.Containers()) > 0 || len(w.instances) > 0 {
			t.Errorf("the cluster still has %v, the cell %v", c.left(), w.Containers())
		}
	})
}

// A sidecar that ends ends the instance, though its process goes on and writes.
func TestSidecarEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		w.Start(container(guid))
		synctest.Wait()
		c.says(guid, "hello")
		c.begins(guid, true, true)
		wait(time.Second)
		c.mu.Lock()
		c.set(guid, func(o kube.Object) {
			now := time.Now().UTC().Format(time.RFC3339)
			o["status"] = doc{"phase": "Running", "containerStatuses": []any{doc{"name": "process", "started": true, "state": doc{"running": doc{"startedAt": now}}},
				doc{"name": "sidecar-1", "state": doc{"terminated": doc{"exitCode": int64(3), "reason": "Error", "startedAt": now, "finishedAt": now}}}}}
		})
		c.mu.Unlock()
		wait(time.Minute)
		if got := w.take(); !strings.Contains(got, "event exited 3") || len(c.left()) > 0 {
			t.Errorf("got %s; left: %v", got, c.left())
		}
	})
}

func TestStop(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		spec := container(guid)
		spec.Action.Run.Stop = []lrp.Signal{{Name: "INT", Wait: 10 * time.Second}, {Name: "TERM", Wait: 15 * time.Second}}
		w.Start(spec)
		synctest.Wait()
		c.begins(guid, true, true)
		wait(time.Second)
		w.Stop(guid)
		wait(time.Second)
		if w.phase() != lrp.PhaseStopping || c.grace[guid] != 25*time.Second {
			t.Errorf("an instance that was stopped is %s, with %s to end", w.phase(), c.grace[guid])
		}
		w.take()
		c.exits(guid, 143)
		wait(10 * time.Second)
		if got := w.take(); !strings.Contains(got, "event exited 0 failed=false stopped=true") || len(c.left()) > 0 {
			t.Errorf("got %s; left: %v", got, c.left())
		}
	})
}

// A pod on a node that does not answer never ends: its instance does.
func TestStopOnLostNode(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		w.Start(container(guid))
		synctest.Wait()
		c.begins(guid, true, true)
		wait(time.Second)
		w.Stop(guid)
		wait(5 * time.Minute)
		if got := w.take(); !strings.Contains(got, "event exited") || len(w.Containers()) > 0 {
			t.Errorf("got %s; the cell has %v", got, w.Containers())
		}
	})
}

// The next daemon has what the one before had, and tells nothing of it again.
func TestAdoption(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		w := run(t, c, dir)
		synctest.Wait()
		w.Start(container(guid))
		w.Start(container("i-2"))
		synctest.Wait()
		for _, pod := range []string{guid, "i-2"} {
			c.says(pod, "first")
			c.begins(pod, true, true)
		}
		wait(5 * time.Second)
		w.kill()
		c.says(guid, "second")
		c.exits("i-2", 3)
		c.mu.Lock()
		c.objects["Secret"]["i-3-env"] = c.objects["Secret"]["i-1-env"]
		c.mu.Unlock()
		w = run(t, c, dir)
		wait(10 * time.Second)
		if got := w.Containers(); len(got) != 1 || got[0].GUID != guid || got[0].Phase != lrp.PhaseRunning || !got[0].Ready || got[0].LogTags["app_name"] != "shop" || got[0].MemoryMB != 64 {
			t.Errorf("the cell has %+v", got)
		}
		got := w.take()
		if strings.Contains(got, "first") || strings.Count(got, "second") != 1 || strings.Contains(got, "event running") || strings.Count(got, "event exited 3") != 1 {
			t.Errorf("got\n%s", got)
		}
		if got := strings.Join(c.left(), " "); got != "i-1 i-1-env i-1-files" {
			t.Errorf("left: %s", got)
		}
		w.Stop(guid)
		wait(time.Second)
		c.exits(guid, 0)
		wait(10 * time.Second)
		if len(c.left()) > 0 {
			t.Errorf("left: %v", c.left())
		}
	})
}

// An instance that was routed to still is when the next daemon has no tunnel yet: requests wait for that.
func TestAdoptionBeforeTheTunnel(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		w := run(t, c, dir)
		synctest.Wait()
		w.Start(container(guid))
		synctest.Wait()
		c.set(guid, func(pod kube.Object) {
			pod.Map("spec")["containers"] = []any{doc{"name": "app", "ports": []any{doc{"containerPort": 8080}}}}
		})
		c.begins(guid, true, true)
		wait(5 * time.Second)
		w.kill()
		w = run(t, c, dir, func(c *Config) { c.Tunnel = cells.TunnelAlways })
		wait(2 * time.Second)
		if got := w.Containers(); len(got) != 1 || !got[0].Ready || strings.Contains(w.take(), "event "+string(lrp.EventNotReady)) {
			t.Errorf("the cell has %+v; want the instance ready as before", got)
		}
		w.kill()
		wait(time.Minute) // of the attempts to open the tunnel
	})
}

// TestLost: a pod that the cluster takes from a node that does not answer is given up once it should have ended, and later where the node answers.
func TestLost(t *testing.T) {
	for status, after := range map[string]time.Duration{"Unknown": kube.Grace, "True": kube.Grace + lostTime} {
		inBubble(t, func(t *testing.T, c *cluster, w *world) {
			w.node(kube.Object{"metadata": doc{"name": "n"}, "status": doc{"conditions": []any{doc{"type": "Ready", "status": status}}}})
			w.Start(container(guid))
			synctest.Wait()
			c.begins(guid, true, true)
			c.mu.Lock()
			c.set(guid, func(o kube.Object) {
				o.Map("spec")["nodeName"] = "n"
				o.Map("metadata")["deletionTimestamp"] = time.Now().Add(kube.Grace).UTC().Format(time.RFC3339)
			})
			c.mu.Unlock()
			wait(after - 2*time.Second)
			if len(w.Containers()) != 1 || w.phase() != lrp.PhaseStopping {
				t.Errorf("node is ready %s: the cell has %+v", status, w.Containers())
			}
			wait(4 * time.Second)
			if got := w.take(); !strings.Contains(got, "is lost") || len(c.left())+len(w.Containers()) > 0 {
				t.Errorf("node is ready %s: got %s; left: %v, %+v", status, got, c.left(), w.Containers())
			}
		})
	}
}

// What the cluster takes away is no crash: the loop sees that it is missing.
func TestTakenAway(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		w.Start(container(guid))
		synctest.Wait()
		c.begins(guid, true, true)
		wait(time.Second)
		w.take()
		before := w.freed
		c.mu.Lock()
		c.take("Pod", guid)
		c.mu.Unlock()
		wait(10 * time.Second)
		if got := w.take(); strings.Contains(got, "event exited") || len(w.Containers()) > 0 || w.freed == before || len(c.left()) > 0 {
			t.Errorf("got %s; the cell has %v; left: %v", got, w.Containers(), c.left())
		}
	})
}

// While the cluster does not answer nothing is known of a cell that has just begun, and nothing
// is lost of one that runs.
func TestUnreachable(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.setDown(errors.New("no answer"))
		w := run(t, c, dir)
		wait(time.Second)
		if p := w.Presence(); !p.Unreachable || p.Problem != "the API server does not answer: no answer" || p.Mend == "" {
			t.Errorf("a cluster that never answered is %+v", p)
		}
		c.setDown(nil)
		wait(5 * time.Second)
		if p := w.Presence(); p.Unreachable || p.Problem+p.Mend != "" {
			t.Errorf("a cluster that answers is %+v", p)
		}
		c.setDown(errors.New("no answer"))
		w.Start(container(guid))
		wait(time.Minute)
		if w.phase() != lrp.PhaseCreating {
			t.Errorf("an instance that the cluster has not accepted yet is %s", w.phase())
		}
		c.setDown(nil)
		wait(time.Minute)
		if got := strings.Join(c.left(), " "); got != "i-1 i-1-env i-1-files" {
			t.Errorf("the cluster has %s", got)
		}
	})
}

func TestStopBeforeCreated(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		c.setDown(errors.New("no answer"))
		w.Start(container(guid))
		wait(time.Second)
		w.Stop(guid)
		wait(time.Second)
		c.setDown(nil)
		wait(time.Minute)
		if got := w.take(); !strings.Contains(got, "event exited 0 failed=false stopped=true") || len(c.left()) > 0 || len(w.Containers()) > 0 {
			t.Errorf("got %s; left: %v", got, c.left())
		}
	})
}

// TestWaits: why an instance does not start yet is said where its stats are asked for, and what the image's registry needs.
func TestWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		w.Start(container(guid))
		synctest.Wait()
		if s, ok := w.Stats(guid); ok || s != (lrp.Stats{}) {
			t.Errorf("got %+v, %t of an instance that is being made", s, ok)
		}
		c.waits(guid, "ErrImagePull")
		wait(time.Second)
		if s, ok := w.Stats(guid); ok || !strings.HasPrefix(s.Waits, "ErrImagePull: image ") || !strings.HasSuffix(s.Waits, ": it is absent") {
			t.Errorf("got %+v, %t of an instance that waits", s, ok)
		}
	})
}

// TestServiceNames: that no pod reaches a service of the built-in broker is a line in the log of what is bound to one.
func TestServiceNames(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *cluster, w *world) {
		const at = "postgres://u:p@1b.services.internal:5432"
		for _, c := range []struct {
			guid, env, file string
			want            bool
		}{{"i-1", at, "", true}, {"i-2", "", at, true}, {"i-3", "postgres://db.example.com", "example.com", false}} {
			spec := container(c.guid)
			spec.Env, spec.Files = append(spec.Env, lrp.EnvVar{Name: "VCAP_SERVICES", Value: c.env}), []lrp.File{{Path: "db/uri", Content: []byte(c.file)}}
			w.Start(spec)
			wait(time.Second)
			if got := w.take(); strings.Contains(got, "which no pod reaches") != c.want {
				t.Errorf("%s: got the log %s", c.guid, got)
			}
		}
	})
}

// TestHold: why a node does not start a pod is asked for once that takes long, one pod at a time.
func TestHold(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		w.Start(container(guid))
		synctest.Wait()
		c.mu.Lock()
		c.events = []kube.Object{{"type": "Warning", "reason": "FailedCreatePodSandBox", "message": "no network plugin"}}
		c.set(guid, func(o kube.Object) { o.Map("spec")["nodeName"] = "n" })
		c.mu.Unlock()
		wait(slowTime / 2)
		if s, _ := w.Stats(guid); s.Waits != "" || c.called("events") > 0 {
			t.Errorf("got %+v, %d requests for events before it is late", s, c.called("events"))
		}
		wait(slowTime)
		if s, _ := w.Stats(guid); s.Waits != "FailedCreatePodSandBox: no network plugin" || !strings.Contains(w.take(), "waits: FailedCreatePodSandBox: no network plugin") {
			t.Errorf("got %+v", s)
		}
		wait(time.Hour)
		if n := c.called("events"); n != int((time.Hour+slowTime*3/2)/slowTime) {
			t.Errorf("got %d requests for events in an hour", n)
		}
		c.begins(guid, true, true)
		wait(time.Hour)
		if s, ok := w.Stats(guid); !ok || s.Waits != "" {
			t.Errorf("got %+v, %t of an instance that runs", s, ok)
		}
	})
}

// TestUserNamespaces: pods have user namespaces where each node that takes pods has them.
func TestUserNamespaces(t *testing.T) {
	node := func(name string, ready, has bool) kube.Object {
		return kube.Object{"metadata": doc{"name": name}, "status": doc{"conditions": []any{doc{"type": "Ready", "status": map[bool]string{true: "True", false: "False"}[ready]}}, "allocatable": doc{"memory": "512Mi", "pods": "110"},
			"nodeInfo": doc{"kernelVersion": "6.8.0"}, "runtimeHandlers": []any{doc{"name": "", "features": doc{"userNamespaces": has}}}}}
	}
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		has := func(guid string) bool {
			w.Start(container(guid))
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			hostUsers, set := c.objects["Pod"][guid].Map("spec")["hostUsers"].(bool)
			return set && !hostUsers
		}
		w.node(node("a", true, true))
		w.node(node("b", false, false))
		if !has("i-1") {
			t.Error("a pod has no user namespace, though all ready nodes have them")
		}
		w.node(node("b", true, false))
		if has("i-2") {
			t.Error("a pod has a user namespace, though a node has none")
		}
	})
}

func TestNeverStarts(t *testing.T) {
	for name, begin := range map[string]func(*cluster, *world, lrp.Container){
		"it is absent": func(c *cluster, w *world, spec lrp.Container) {
			w.Start(spec)
			synctest.Wait()
			c.waits(guid, "ImagePullBackOff")
		},
		"over quota": func(c *cluster, w *world, spec lrp.Container) {
			c.refuses = apierrors.NewForbidden(podResource, guid, errors.New("over quota"))
			w.Start(spec)
		},
		`not as user "node"`: func(_ *cluster, w *world, spec lrp.Container) {
			spec.Action = lrp.Run{Path: "/web", User: "node"}.Action()
			w.Start(spec)
		},
	} {
		inBubble(t, func(t *testing.T, c *cluster, w *world) {
			begin(c, w, container(guid))
			wait(time.Minute)
			got := w.take()
			if !strings.Contains(got, "event exited -1 failed=true stopped=false failed to create container: ") || strings.Count(got, name) < 2 || len(c.left()) > 0 || len(w.Containers()) > 0 {
				t.Errorf("%s: got %s; left: %v", name, got, c.left())
			}
		})
	}
}

// A list of pods that was made before a pod was does not take it away.
func TestListBeforePod(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		c.setDown(errors.New("no answer"))
		w.Start(container("i-2"))
		w.begin()
		w.all(nil)
		wait(time.Second)
		c.setDown(nil)
		wait(time.Minute)
		if w.phase() != lrp.PhaseCreating {
			t.Errorf("the instance whose pod was made after the list is %q; want it to be there", w.phase())
		}
		if got := w.take(); strings.Contains(got, "taken away") {
			t.Errorf("got %s; want it to be the same pod", got)
		}
		w.Stop("i-2")
		wait(time.Minute)
		w.begin()
		w.Start(container(guid))
		synctest.Wait()
		w.all(nil)
		wait(time.Second)
		if w.phase() != lrp.PhaseCreating {
			t.Errorf("the instance is %q; want it to be there", w.phase())
		}
		w.begin()
		w.all(nil)
		wait(time.Minute)
		if got := w.phase(); got != "" {
			t.Errorf("the instance whose pod is gone is %s", got)
		}
	})
}

// What an app writes is never taken for the time of a line, however long it is.
func TestLongLines(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		w.Start(container(guid))
		synctest.Wait()
		long := strings.Repeat("x", maxLine+64-len(time.Now().UTC().Format(time.RFC3339Nano)+" "))
		c.says(guid, long+"2099-01-01T00:00:00Z of an app")
		wait(time.Second)
		c.says(guid, "after it")
		c.begins(guid, true, true)
		wait(time.Second)
		got := w.take()
		if !strings.Contains(got, "of an app") || strings.Count(got, "after it") != 1 || strings.Contains(got, "2000-01") {
			t.Errorf("got %.100q … %q", got, got[max(0, len(got)-300):])
		}
	})
}

// TestMeasureAtOnce asks several slow nodes at once.
func TestMeasureAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		c.slow = askTime
		for _, pod := range []string{guid, "i-2", "i-3"} {
			w.Start(container(pod))
			synctest.Wait()
			c.begins(pod, true, true)
			c.mu.Lock()
			c.set(pod, func(o kube.Object) { o.Map("spec")["nodeName"] = "node-of-" + pod })
			c.mu.Unlock()
		}
		wait(time.Second)
		began := time.Now()
		if m := w.Measure(); len(m) != 1 || c.called("summary") != 3 || time.Since(began) != askTime {
			t.Errorf("got %+v by %d questions after %v; want that of %s by 3 after %v", m, c.called("summary"), time.Since(began), guid, askTime)
		}
	})
}

// TestNoLog asks more and more rarely for a log that the cluster does not give, and at once when the pod ends.
func TestNoLog(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		c.noLog = fmt.Errorf("%w: 500", apply.ErrNoLog)
		w.Start(container(guid))
		synctest.Wait()
		c.begins(guid, true, true)
		wait(time.Hour)
		if n := c.called("log"); n < 60 || n > 72 {
			t.Errorf("the log was asked for %d times in an hour; want once a minute", n)
		}
		if got := strings.Count(w.take(), "Output of instance i-1 is missing here"); got != 1 {
			t.Errorf("the app was told so %d times; want once", got)
		}
		c.mu.Lock()
		c.noLog = nil
		c.mu.Unlock()
		c.says(guid, "last words")
		c.exits(guid, 0)
		wait(time.Second)
		if got := w.take(); !strings.Contains(got, "APP/PROC/WEB: last words") {
			t.Errorf("got %s", got)
		}
	})
}

// TestCutLog makes the cluster end a log in the middle of a line, before the container has ended and after it.
func TestCutLog(t *testing.T) {
	for name, cut := range map[string]func(*cluster){
		"while it runs": func(c *cluster) { c.begins(guid, true, true); wait(time.Second); c.exits(guid, 0) },
		"at its end":    func(c *cluster) { c.exits(guid, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster, w *world) {
				w.Start(container(guid))
				synctest.Wait()
				c.cutLogs = 1
				c.says(guid, "the first line")
				wait(time.Millisecond)
				c.says(guid, "the second line")
				cut(c)
				wait(time.Minute)
				if got := w.take(); strings.Count(got, "APP/PROC/WEB: the first line\n") != 1 || strings.Count(got, "APP/PROC/WEB: the second line\n") != 1 || strings.Contains(got, "the first l\n") {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

func TestSetFilesAndTags(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		w.Start(container(guid))
		synctest.Wait()
		c.begins(guid, true, true)
		wait(time.Second)
		was := w.Containers()[0].FilesDigest
		if err := w.SetFiles(guid, []lrp.File{{Path: "db/type", Content: []byte("y")}}); err != nil {
			t.Error(err)
		}
		if err := w.SetFiles(guid, []lrp.File{{Path: "db/other"}}); err == nil {
			t.Error("a pod got files that it does not have")
		}
		if err := w.SetLogTags(guid, map[string]string{"app_name": "store"}); err != nil {
			t.Error(err)
		}
		w.kill()
		w = run(t, c, t.TempDir())
		wait(time.Second)
		if s := w.Containers()[0]; s.FilesDigest == was || s.LogTags["app_name"] != "store" {
			t.Errorf("the next daemon has %+v", s)
		}
		if got := w.LogTags(guid); got["app_name"] != "store" || got["index"] != "edge" {
			t.Errorf("lines have the tags %v", got)
		}
	})
}

func TestOwnerStays(t *testing.T) {
	dir := t.TempDir() + "/kubernetes"
	first, err := OwnerIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OwnerIn(dir)
	other, otherErr := OwnerIn(t.TempDir())
	if err != nil || otherErr != nil || first != again || first == other || len(first) < 20 {
		t.Errorf("got %q, %q of the same directory, %q of another one, %v, %v", first, again, other, err, otherErr)
	}
}
