package images

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/server/kube/kubetest"
	"cupola/test/e2e"
)

// churn creates, scales and deletes apps of one droplet at random. Requests fail while the daemon is killed: it goes on with others.
type churn struct {
	client         *e2e.Client
	space, droplet string
}

// run goes on until ctx ends.
func (u *churn) run(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(100 * time.Millisecond)
		all, err := e2e.List[app](ctx, u.client, "/v3/apps")
		if err != nil {
			continue
		}
		all = slices.DeleteFunc(all, func(a app) bool { return !strings.HasPrefix(a.Name, "churn-") })
		switch what := rand.IntN(4); {
		case len(all) == 0 || what == 0 && len(all) < 4:
			u.create(ctx, fmt.Sprintf("churn-%d", n))
		case what == 1:
			_ = u.client.Call(ctx, "DELETE", "/v3/apps/"+all[rand.IntN(len(all))].GUID, nil, nil)
		default:
			_ = u.client.Call(ctx, "POST", "/v3/apps/"+all[rand.IntN(len(all))].GUID+"/processes/web/actions/scale", e2e.Doc{"instances": rand.IntN(4)}, nil)
		}
	}
}

// create makes and starts an app, as far as the daemon lives.
func (u *churn) create(ctx context.Context, name string) {
	var app, droplet struct{ GUID string }
	err := u.client.Call(ctx, "POST", "/v3/apps", e2e.Doc{"name": name, "lifecycle": e2e.Doc{"type": "docker", "data": e2e.Doc{}}, "relationships": e2e.Doc{"space": e2e.ToOne(u.space)}}, &app)
	if err == nil {
		err = u.client.Call(ctx, "POST", "/v3/droplets?source_guid="+u.droplet, e2e.Doc{"relationships": e2e.Doc{"app": e2e.ToOne(app.GUID)}}, &droplet)
	}
	if err == nil {
		err = u.client.Call(ctx, "PATCH", "/v3/apps/"+app.GUID+"/relationships/current_droplet", e2e.ToOne(droplet.GUID), nil)
	}
	if err == nil {
		_ = u.client.Call(ctx, "POST", "/v3/apps/"+app.GUID+"/actions/start", nil, nil)
	}
}

// checkKills kills the daemon at random moments while apps are created, scaled and deleted: there is no pod without a row after that, and no
// row without a pod.
func checkKills(t *testing.T, d *e2e.Daemon, n *kubetest.Node) {
	t.Helper()
	kills := 5
	if e2e.Thorough() {
		kills = 50
	}
	var droplet struct{ GUID string }
	d.API("GET", "/v3/apps/"+d.App("shop")+"/droplets/current", nil, &droplet)
	u := &churn{client: d.Client(), space: d.First("/v3/spaces?names=dev"), droplet: droplet.GUID}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		u.run(ctx)
	}()
	for range kills {
		time.Sleep(rand.N(4 * time.Second))
		d.Kill()
		d.Start()
	}
	cancel()
	<-ended
	began := time.Now()
	checkRows(t, d, n)
	t.Logf("after %d kills the pods were those of the instances within %.1f s", kills, time.Since(began).Seconds())
	for _, app := range apps(t, d) {
		if app.Name != "shop" {
			d.Deleted(app.Name)
		}
	}
	checkRows(t, d, n)
}

type app struct{ GUID, Name, State string }

func apps(t *testing.T, d *e2e.Daemon) []app {
	t.Helper()
	all, err := e2e.List[app](t.Context(), d.Client(), "/v3/apps")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checkRows waits until all instances run that should, and the cluster has their pods and Secrets and no others.
func checkRows(t *testing.T, d *e2e.Daemon, n *kubetest.Node) {
	t.Helper()
	e2e.Eventually(t, kubetest.Patience, func() string {
		var rows []string
		for _, app := range apps(t, d) {
			for _, i := range d.Stats(app.Name, "web") {
				if (i.State == "RUNNING") != (app.State == "STARTED") {
					return fmt.Sprintf("app %s is %s, and its instance %+v", app.Name, app.State, i)
				}
				if i.State == "RUNNING" {
					rows = append(rows, i.InstanceGUID)
				}
			}
		}
		slices.Sort(rows)
		if pods := slices.Sorted(slices.Values(podNames(n))); !slices.Equal(pods, rows) {
			return fmt.Sprintf("the cluster has the pods %v, the instances are %v", pods, rows)
		}
		if secrets := n.List("v1", "Secret"); len(secrets) != len(rows) {
			return fmt.Sprintf("the cluster has %d Secrets for %d instances", len(secrets), len(rows))
		}
		return ""
	})
}

// outage is how long the API server does not answer in the long form: longer than any time after which cupola gives up something
// of a cluster that answers. The longest are a minute: a pod that does not end is lost, an agent that did not help is not wanted.
const outage = 2 * time.Minute

// checkOutage stops the API server: apps are routed all the same, also by the next daemon, no instance is lost or restarted, and what was
// asked for meanwhile is done when the API server goes on. The short form ends once the cell is known to be unreachable.
func checkOutage(t *testing.T, d *e2e.Daemon, n *kubetest.Node, image string) {
	t.Helper()
	if fault := d.PushDocker(t, "early", image, ""); fault != "" {
		t.Fatal(fault)
	}
	d.Running("early", "web", 1)
	d.ScaleTo("shop", 2)
	was := e2e.GUIDs(d.Running("shop", "web", 2))
	traffic := d.Send("shop.localhost", 10)
	resume := n.Pause("apiserver")
	defer resume()
	began := time.Now()
	e2e.Eventually(t, kubetest.Patience, func() string {
		out, err := d.Run("cells")
		if err == nil && strings.Contains(out, "edge (unreachable)") {
			return ""
		}
		return out
	})
	d.API("POST", "/v3/apps/"+d.App("shop")+"/processes/web/actions/scale", e2e.Doc{"instances": 3}, nil)
	if fault := d.PushDocker(t, "late", image, ""); fault != "" {
		t.Fatal(fault)
	}
	d.API("DELETE", "/v3/apps/"+d.App("early"), nil, nil)
	gap := e2e.Gap{From: time.Now()}
	d.Kill()
	d.Start()
	gap.To = time.Now()
	if e2e.Thorough() {
		time.Sleep(time.Until(began.Add(outage)))
	}
	t.Logf("the API server was away for %.0f s", time.Since(began).Seconds())
	resume()
	began = time.Now()
	d.Running("late", "web", 1)
	is := e2e.GUIDs(d.Running("shop", "web", 3))
	checkRows(t, d, n)
	t.Logf("what was asked for meanwhile was done within %.1f s", time.Since(began).Seconds())
	for _, guid := range was {
		if !slices.Contains(is, guid) {
			t.Errorf("the instances are %v; want those of before the outage among them: %v", is, was)
		}
	}
	if failed := traffic.End(t, gap); len(failed) > 0 {
		t.Errorf("%d requests failed, the first: %+v", len(failed), failed[0])
	}
	d.Deleted("late")
	d.ScaleTo("shop", 1)
}
