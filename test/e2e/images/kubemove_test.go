package images

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/server/kube"
	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
)

// TestAppOnKubernetesCellMoves moves apps from this machine's cell to a cluster's and back while all of them are asked, first where the
// pods answer at their addresses, then by the tunnel: no request fails, and nothing is left where an app was. The long form has the 20 apps of
// docs/kubernetes.md.
func TestAppOnKubernetesCellMoves(t *testing.T) {
	t.Parallel()
	binary, n := e2e.NeedBinary(t), kubetest.StartNode(t)
	registry := freeAddress(t, n.Host())
	d := e2e.StartDaemon(t, binary, "--kubernetes", "edge="+n.Account(), "--kubernetes-registry", registry)
	n.Trust(registry, filepath.Join(d.Dir, "ca.pem"))
	m := &moving{d: d, n: n, perSecond: 20}
	count := 3
	if e2e.Thorough() {
		count, m.perSecond = 20, 10
	}
	for i := range count {
		m.push(fmt.Sprintf("shop-%d", i), 1+i%2)
	}
	m.thereAndBack()
	m.move("cupola", 0) // where they are
	m.one("shop-1")
	d.Kill()
	n.Hide()
	d.Start()
	m.thereAndBack()
	wasLogged(d, "they are reached by the tunnel")
}

// moving are apps that move between cells.
type moving struct {
	d         *e2e.Daemon
	n         *kubetest.Node
	perSecond int // requests to each app
	apps      []string
	instances int // of all apps
}

// push pushes an app to the space whose apps move.
func (m *moving) push(app string, instances int) {
	m.d.T.Helper()
	pushProfiled(m.d, app, "minifs")
	m.d.ScaleTo(app, instances)
	m.apps = append(m.apps, app)
	m.instances += instances
}

// thereAndBack moves the apps while they are asked.
func (m *moving) thereAndBack() {
	m.d.T.Helper()
	m.isOn("cupola")
	end := m.send()
	for _, to := range []string{"edge", "cupola"} {
		m.move(to, len(m.apps))
		m.isOn(to)
	}
	end()
}

// one moves one app there, from where it does not follow its space, and back.
func (m *moving) one(app string) {
	m.d.T.Helper()
	end := m.send()
	m.move("edge", 1, app)
	if out := m.move("cupola", 0); !strings.Contains(out, "stays: it has its own placement pool edge") { // where the others are
		m.d.T.Errorf("the move of the space does not say that the app stays:\n%s", out)
	}
	want := e2e.GUIDs(m.d.Running(app, "web", len(m.d.Stats(app, "web"))))
	m.n.Until("the pods are those of the app", func() bool { return slices.Equal(appPodNames(m.n), want) })
	if out, err := m.d.Run("placement-pools", "list"); err != nil || !strings.Contains(out, "cupola/dev/"+app) {
		m.d.T.Errorf("the pools do not show the app: %v\n%s", err, out)
	}
	m.move("cupola", 1, app)
	m.isOn("cupola")
	end()
}

// send asks all apps until end is called: no request may fail.
func (m *moving) send() (end func()) {
	m.d.T.Helper()
	var traffic []*e2e.Traffic
	for _, app := range m.apps {
		m.d.Answers(app, "hello")
		traffic = append(traffic, m.d.Send(app+".localhost", m.perSecond))
	}
	return func() {
		m.d.T.Helper()
		for i, tr := range traffic {
			if failed := tr.End(m.d.T.(*testing.T)); len(failed) > 0 {
				m.d.T.Errorf("%s: %d requests failed, the first one %+v", m.apps[i], len(failed), failed[0])
			}
		}
	}
}

// move moves the space, or an app of it, and wants as many apps to move.
func (m *moving) move(to string, want int, app ...string) (out string) {
	m.d.T.Helper()
	began, where := time.Now(), strings.Join(append([]string{"cupola/dev"}, app...), "/")
	out, err := m.d.Run(slices.Concat([]string{"cells", "move", "cupola", "dev"}, app, []string{"--to", to})...)
	if err != nil || !strings.Contains(out, fmt.Sprintf("%s on %s: %d moved.", where, to, want)) || strings.Count(out, " moved in ") != want {
		m.d.T.Fatalf("move %s to %s: %v\n%s", where, to, err, out)
	}
	m.d.T.Logf("%d apps of %s moved to %s in %.1f s", want, where, to, time.Since(began).Seconds())
	return out
}

// isOn waits until all instances are on the cell, and none is on the other one.
func (m *moving) isOn(cell string) {
	m.d.T.Helper()
	e2e.Eventually(m.d.T, kubetest.Patience, func() string {
		var want []string
		for _, app := range m.apps {
			want = append(want, e2e.GUIDs(m.d.Stats(app, "web"))...)
		}
		slices.Sort(want)
		here, there := m.d.Containers(), appPodNames(m.n)
		if cell == "edge" {
			here, there = there, here
		}
		if len(want) != m.instances || !slices.Equal(here, want) || len(there) > 0 {
			return fmt.Sprintf("%s has %v, the other cell %v; the instances are %v, want %d", cell, here, there, want, m.instances)
		}
		return ""
	})
}

// appPodNames are the names of the apps' pods, sorted; the agent's is left out.
func appPodNames(n *kubetest.Node) (names []string) {
	for _, pod := range n.List("v1", "Pod") {
		if !kube.IsAgent(pod) {
			names = append(names, pod.Name())
		}
	}
	slices.Sort(names)
	return names
}
