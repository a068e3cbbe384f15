package images

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
)

// appSize is how many instances an app has at most.
const appSize = 1000

// TestAppOnKubernetesCellOfManyPods runs many pods on nodes that pretend to run them, and counts what the daemon asks the API server for:
// the pods are listed once and watched once, whatever their number, each costs its own few requests, and nothing is polled but the
// kubelets' measurements. CUPOLA_KUBE_PODS is their number; the log has the figures of docs/kubernetes.md.
func TestAppOnKubernetesCellOfManyPods(t *testing.T) {
	binary, pods := e2e.NeedBinary(t), 200
	if n, err := strconv.Atoi(os.Getenv("CUPOLA_KUBE_PODS")); err == nil {
		pods = n
	} else {
		t.Parallel()
	}
	f := kubetest.StartFleet(t, pods)
	registry := f.Registry()
	f.PushPod(registry+"/team/web:1", "serve", ":8080")
	d := e2e.StartDaemon(t, binary, "--plain-http", registry, "--cells", "none", "--kubernetes", "edge="+f.Account())
	m := &many{t: t, d: d, f: f, pods: pods}
	m.push(registry + "/team/web:1")
	t.Logf("with an instance of each app the daemon has %s", usage(d.Cmd.Process.Pid))
	m.scale(appSize)
	m.checkCosts()
	m.checkWatches()
	m.checkQuiet()
	m.restart()
	pages := m.pages()
	m.scale(0) // which the daemon cannot before it has listed the pods
	if got := f.Asked()["list pods"]; got > 2*pages {
		t.Errorf("the pods were listed by %d requests; want %d for each daemon", got, pages)
	}
}

// many is a fleet full of instances.
type many struct {
	t    *testing.T
	d    *e2e.Daemon
	f    *kubetest.Fleet
	pods int
	apps []string
}

// push pushes the apps, of one instance each.
func (m *many) push(image string) {
	m.t.Helper()
	m.d.Flag("diego_docker", true)
	for n := range (m.pods + appSize - 1) / appSize {
		app := fmt.Sprintf("app-%d", n)
		if fault := m.d.PushDocker(m.t, app, image, ""); fault != "" {
			m.t.Fatal(fault)
		}
		m.d.Running(app, "web", 1)
		m.apps = append(m.apps, app)
	}
}

// scale scales each app to so many instances, to as many as the fleet takes in sum, and waits for them.
func (m *many) scale(to int) {
	m.t.Helper()
	began, left := time.Now(), min(m.pods, to*len(m.apps))
	m.pods = left
	for _, app := range m.apps {
		n := min(left, to)
		m.d.API("POST", "/v3/apps/"+m.d.App(app)+"/processes/web/actions/scale", e2e.Doc{"instances": n, "memory_in_mb": 8}, nil)
		left -= n
	}
	m.await(fmt.Sprintf("scaling to %d pods", m.pods), began)
}

// await waits until the pods are those of the instances, and all of these run.
func (m *many) await(what string, began time.Time) {
	m.t.Helper()
	e2e.Eventually(m.t, 5*kubetest.Patience, func() string {
		if n := m.f.Pods(); n != m.pods {
			return fmt.Sprintf("there are %d pods; want %d", n, m.pods)
		}
		return ""
	})
	m.t.Logf("%s: pods after %.1f s", what, time.Since(began).Seconds())
	e2e.Eventually(m.t, 5*kubetest.Patience, func() string {
		time.Sleep(time.Second) // to look costs the daemon, too
		states := map[string]int{}
		for _, app := range m.apps {
			for _, i := range m.d.Stats(app, "web") {
				states[i.State]++
			}
		}
		if states["RUNNING"] != m.pods || m.pods > 0 && len(states) > 1 {
			return fmt.Sprintf("the instances are %v; want %d that run", states, m.pods)
		}
		return ""
	})
	m.t.Logf("%s: done after %.1f s; the daemon has %s; the API server %s, the scheduler %s", what, time.Since(began).Seconds(), usage(m.d.Cmd.Process.Pid), usage(m.f.PID("apiserver")), usage(m.f.PID("scheduler")))
}

// restart kills the daemon, and waits until the next one has the pods and reads all their logs.
func (m *many) restart() {
	m.t.Helper()
	logs := m.f.Asked()["get pods/log"]
	m.d.Kill()
	began := time.Now()
	m.d.Start()
	m.t.Logf("a restart of the daemon: serves after %.1f s", time.Since(began).Seconds())
	e2e.Eventually(m.t, kubetest.Patience, func() string {
		var cells []struct {
			Unreachable bool
			Used        struct{ Containers int }
		}
		m.d.API("GET", "/v1/cells", nil, &cells)
		if len(cells) == 1 && !cells[0].Unreachable && cells[0].Used.Containers == m.pods {
			return ""
		}
		return fmt.Sprintf("the cells are %+v; want %d instances", cells, m.pods)
	})
	m.t.Logf("a restart of the daemon: has listed the pods after %.1f s", time.Since(began).Seconds())
	e2e.Eventually(m.t, kubetest.Patience, func() string {
		time.Sleep(time.Second)
		if n := m.f.Asked()["get pods/log"] - logs; n < m.pods {
			return fmt.Sprintf("%d of %d logs are followed", n, m.pods)
		}
		return ""
	})
	m.await("a restart of the daemon", began)
}

// usage is what a process has of memory, and its CPU time.
func usage(pid int) string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	var all []string
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmRSS:") || strings.HasPrefix(line, "RssAnon:") || strings.HasPrefix(line, "VmHWM:") {
			all = append(all, strings.Join(strings.Fields(line), " "))
		}
	}
	if _, rest, ok := strings.Cut(string(stat), ") "); ok {
		fields := strings.Fields(rest)
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		all = append(all, fmt.Sprintf("CPU %d s", (user+system)/100))
	}
	return strings.Join(all, ", ")
}

// pages are the requests of a list of the pods.
func (m *many) pages() int { return m.pods/500 + 1 }

// checkCosts counts what was asked for until all run.
func (m *many) checkCosts() {
	m.t.Helper()
	got := m.f.Asked()
	for _, what := range slices.Sorted(maps.Keys(got)) {
		m.t.Logf("%s: %d, %.2f a pod", what, got[what], float64(got[what])/float64(m.pods))
	}
	for what, most := range map[string]int{"create pods": m.pods, "create secrets": m.pods, "get pods/log": m.pods, "patch pods": m.pods / 10, "list secrets": 2, "list events": m.pods / 20, "list pods": m.pages(), "list nodes": 1, "get pods": 0, "get secrets": 0} {
		if most += most / 20; got[what] > most { // some requests are tried again
			m.t.Errorf("%s: %d requests for %d pods; want %d at most", what, got[what], m.pods, most)
		}
	}
}

// checkWatches wants one watch to be open of each kind of object that nobody else watches in the namespace. (An API server with much to do ends
// watches, and the next begin where they ended.)
func (m *many) checkWatches() {
	m.t.Helper()
	e2e.Eventually(m.t, kubetest.Patience, func() string {
		status, text, err := m.f.Get("/metrics")
		for group, resource := range map[string]string{"": "pods", "networking.k8s.io": "networkpolicies"} {
			want := fmt.Sprintf(`apiserver_longrunning_requests{component="apiserver",group=%q,resource=%q,scope="namespace",subresource="",verb="WATCH",version="v1"} 1`, group, resource)
			if err != nil || !strings.Contains(text, want+"\n") {
				return fmt.Sprintf("%d, %v: the metrics have no %s", status, err, want)
			}
		}
		return ""
	})
}

// checkQuiet counts what is asked for while nothing happens.
func (m *many) checkQuiet() {
	m.t.Helper()
	was := m.f.Asked()
	time.Sleep(30 * time.Second)
	for what, n := range m.f.Asked() {
		n -= was[what]
		if n > 0 {
			m.t.Logf("in 30 s without a change: %s: %d", what, n)
		}
		// Network policies have the addresses of this machine, which change where other tests run beside this one.
		if !strings.HasPrefix(what, "watch ") && !strings.HasSuffix(what, " networkpolicies") && what != "get nodes/proxy" && n > 0 {
			m.t.Errorf("%d times %s without a change", n, what)
		}
	}
}
