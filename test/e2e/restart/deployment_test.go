package restart

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cupola/test/e2e"
)

// rollout is what the tests look at of one.
type rollout struct {
	GUID   string
	Status struct{ Value, Reason string }
}

// deploys begins a deployment of an app.
func deploys(d *e2e.Daemon, app, strategy string, options e2e.Doc) rollout {
	d.T.Helper()
	var made rollout
	d.API("POST", "/v3/deployments", e2e.Doc{"strategy": strategy, "options": options,
		"relationships": e2e.Doc{"app": e2e.Doc{"data": e2e.Doc{"guid": d.App(app)}}}}, &made)
	return made
}

// ends waits until a deployment has a status.
func ends(d *e2e.Daemon, made rollout, value, reason string) {
	d.T.Helper()
	e2e.Eventually(d.T, 60*time.Second, func() string {
		var now rollout
		d.API("GET", "/v3/deployments/"+made.GUID, nil, &now)
		if now.Status.Value == value && now.Status.Reason == reason {
			return ""
		}
		return fmt.Sprintf("the deployment is %v; want %s %s", now.Status, value, reason)
	})
}

// process is what the tests look at of a web process.
type process struct {
	GUID      string
	Instances int
}

func webs(d *e2e.Daemon, app string) []process {
	d.T.Helper()
	var list struct{ Resources []process }
	d.API("GET", "/v3/apps/"+d.App(app)+"/processes?types=web", nil, &list)
	return list.Resources
}

// TestRollingUnderLoad deploys an app of five instances under load: rolling, as
// a canary with steps, and rolling with the daemon killed half way. No request
// may fail, but for those that a killed daemon had, or that found none.
func TestRollingUnderLoad(t *testing.T) {
	t.Parallel()
	shared := e2e.StartDaemon(t, e2e.NeedBinary(t))
	d := shared.On(t)
	if out, err := d.Run("push", e2e.Example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.API("POST", "/v3/apps/"+d.App("hello-node")+"/processes/web/actions/scale", e2e.Doc{"instances": 5}, nil)
	before := d.Running("hello-node", "web", 5)
	for _, c := range []struct {
		name string
		run  func(*e2e.Daemon) []e2e.Gap
	}{
		{"rolling", func(d *e2e.Daemon) []e2e.Gap {
			ends(d, deploys(d, "hello-node", "rolling", nil), "FINALIZED", "DEPLOYED")
			return nil
		}},
		{"canary", canary},
		{"canceled", canceled},
		{"superseded", func(d *e2e.Daemon) []e2e.Gap {
			first := deploys(d, "hello-node", "rolling", nil)
			halfWay(d, "hello-node")
			ends(d, deploys(d, "hello-node", "rolling", e2e.Doc{"max_in_flight": 2}), "FINALIZED", "DEPLOYED")
			ends(d, first, "FINALIZED", "SUPERSEDED")
			return nil
		}},
		{"killed", killedHalfWay},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := d.On(t)
			load := d.Send("hello-node.localhost", 100)
			gaps := c.run(d)
			shared.Cmd = d.Cmd
			after := d.Running("hello-node", "web", 5)
			for _, f := range load.End(t, gaps...) {
				t.Errorf("a request of %s failed: %s", f.Began.Format(time.StampMilli), f.What)
			}
			if webs := webs(d, "hello-node"); len(webs) != 1 || webs[0].Instances != 5 {
				t.Errorf("got web processes %+v; want one of five instances", webs)
			}
			if c.name != "canceled" {
				replaced(t, before, after)
			}
			before = after
			clean(d, "hello-node", 5)
		})
	}
}

// canary goes through a canary deployment's steps.
func canary(d *e2e.Daemon) []e2e.Gap {
	d.T.Helper()
	made := deploys(d, "hello-node", "canary", e2e.Doc{"canary": e2e.Doc{"steps": []e2e.Doc{{"instance_weight": 20}, {"instance_weight": 60}}}})
	for _, want := range [][2]int{{5, 1}, {3, 3}} {
		ends(d, made, "ACTIVE", "PAUSED")
		webs := webs(d, "hello-node")
		if len(webs) != 2 || webs[0].Instances != want[0] || webs[1].Instances != want[1] {
			d.T.Errorf("got web processes %+v; want %v instances", webs, want)
		}
		d.API("POST", "/v3/deployments/"+made.GUID+"/actions/continue", nil, nil)
	}
	ends(d, made, "FINALIZED", "DEPLOYED")
	return nil
}

// canceled goes back from a canary that has replaced all others.
func canceled(d *e2e.Daemon) []e2e.Gap {
	d.T.Helper()
	made := deploys(d, "hello-node", "canary", e2e.Doc{"canary": e2e.Doc{"steps": []e2e.Doc{{"instance_weight": 100}}}, "max_in_flight": 5})
	ends(d, made, "ACTIVE", "PAUSED")
	d.API("POST", "/v3/deployments/"+made.GUID+"/actions/cancel", nil, nil)
	ends(d, made, "FINALIZED", "CANCELED")
	return nil
}

func killedHalfWay(d *e2e.Daemon) []e2e.Gap {
	d.T.Helper()
	made := deploys(d, "hello-node", "rolling", nil)
	halfWay(d, "hello-node")
	g := e2e.Gap{From: time.Now()}
	d.Kill()
	d.Start()
	g.To = time.Now()
	d.T.Logf("there was no daemon for %v", g.To.Sub(g.From))
	ends(d, made, "FINALIZED", "DEPLOYED")
	return []e2e.Gap{g}
}

// halfWay waits until a deployment wants three instances of five. It hardly pauses
// between two looks, so that a fast deployment has not ended by then.
func halfWay(d *e2e.Daemon, app string) {
	d.T.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; <-time.After(5 * time.Millisecond) {
		switch webs := webs(d, app); {
		case len(webs) > 1 && webs[len(webs)-1].Instances >= 3:
			return
		case len(webs) == 1:
			d.T.Fatal("the deployment has ended; want it half way")
		case time.Now().After(deadline):
			d.T.Fatal("the deployment does not get on")
		}
	}
}

// replaced fails when an instance is there that was before.
func replaced(t *testing.T, before, after []e2e.Instance) {
	t.Helper()
	was := map[string]bool{}
	for _, i := range before {
		was[i.InstanceGUID] = true
	}
	for _, i := range after {
		if was[i.InstanceGUID] {
			t.Errorf("instance %d was not replaced", i.Index)
		}
	}
}

// clean waits until an app has n instances and nothing that leaves, and the
// daemon no other container.
func clean(d *e2e.Daemon, app string, n int) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		var stats struct{ Resources, Stopping []e2e.Instance }
		path := "/v3/apps/" + d.App(app) + "/processes/web/stats"
		if err := d.Client().Call(context.Background(), "GET", path, nil, &stats); err != nil {
			return err.Error()
		}
		if cells := d.Containers(); len(stats.Resources) != n || len(stats.Stopping) > 0 || len(cells) != n {
			return fmt.Sprintf("got %+v and containers %v; want %d instances and nothing else", stats, cells, n)
		}
		return ""
	})
}
