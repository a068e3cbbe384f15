package main

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// rollout is what the tests look at of one.
type rollout struct {
	GUID   string
	Status struct{ Value, Reason string }
}

// deploys begins a deployment of an app.
func (d *daemon) deploys(app, strategy string, options doc) rollout {
	d.t.Helper()
	var made rollout
	d.api("POST", "/v3/deployments", doc{"strategy": strategy, "options": options,
		"relationships": doc{"app": doc{"data": doc{"guid": d.app(app)}}}}, &made)
	return made
}

// ends waits until a deployment has a status.
func (d *daemon) ends(made rollout, value, reason string) {
	d.t.Helper()
	eventually(d.t, 60*time.Second, func() string {
		var now rollout
		d.api("GET", "/v3/deployments/"+made.GUID, nil, &now)
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

func (d *daemon) webs(app string) []process {
	d.t.Helper()
	var list struct{ Resources []process }
	d.api("GET", "/v3/apps/"+d.app(app)+"/processes?types=web", nil, &list)
	return list.Resources
}

// TestRollingUnderLoad deploys an app of five instances under load: rolling, as
// a canary with steps, and rolling with the daemon killed half way. No request
// may fail, but for those that a killed daemon had, or that found none.
func TestRollingUnderLoad(t *testing.T) {
	t.Parallel()
	house := startDaemon(t, needBinary(t))
	d := house.on(t)
	if out, err := d.run("push", example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.api("POST", "/v3/apps/"+d.app("hello-node")+"/processes/web/actions/scale", doc{"instances": 5}, nil)
	before := d.running("hello-node", "web", 5)
	for _, c := range []struct {
		name string
		run  func(*daemon) []gap
	}{
		{"rolling", func(d *daemon) []gap {
			d.ends(d.deploys("hello-node", "rolling", nil), "FINALIZED", "DEPLOYED")
			return nil
		}},
		{"canary", (*daemon).canary},
		{"canceled", (*daemon).canceled},
		{"superseded", func(d *daemon) []gap {
			first := d.deploys("hello-node", "rolling", nil)
			d.halfWay("hello-node")
			d.ends(d.deploys("hello-node", "rolling", doc{"max_in_flight": 2}), "FINALIZED", "DEPLOYED")
			d.ends(first, "FINALIZED", "SUPERSEDED")
			return nil
		}},
		{"killed", (*daemon).killedHalfWay},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := d.on(t)
			load := d.send("hello-node.localhost", 200)
			gaps := c.run(d)
			house.cmd = d.cmd
			after := d.running("hello-node", "web", 5)
			for _, f := range load.end(t, gaps...) {
				t.Errorf("a request of %s failed: %s", f.began.Format(time.StampMilli), f.what)
			}
			if webs := d.webs("hello-node"); len(webs) != 1 || webs[0].Instances != 5 {
				t.Errorf("got web processes %+v; want one of five instances", webs)
			}
			if c.name != "canceled" {
				replaced(t, before, after)
			}
			before = after
			d.clean("hello-node", 5)
		})
	}
}

// canary goes through a canary deployment's steps.
func (d *daemon) canary() []gap {
	d.t.Helper()
	made := d.deploys("hello-node", "canary", doc{"canary": doc{"steps": []doc{{"instance_weight": 20}, {"instance_weight": 60}}}})
	for _, want := range [][2]int{{5, 1}, {3, 3}} {
		d.ends(made, "ACTIVE", "PAUSED")
		webs := d.webs("hello-node")
		if len(webs) != 2 || webs[0].Instances != want[0] || webs[1].Instances != want[1] {
			d.t.Errorf("got web processes %+v; want %v instances", webs, want)
		}
		d.api("POST", "/v3/deployments/"+made.GUID+"/actions/continue", nil, nil)
	}
	d.ends(made, "FINALIZED", "DEPLOYED")
	return nil
}

// canceled goes back from a canary that has replaced all others.
func (d *daemon) canceled() []gap {
	d.t.Helper()
	made := d.deploys("hello-node", "canary", doc{"canary": doc{"steps": []doc{{"instance_weight": 100}}}, "max_in_flight": 5})
	d.ends(made, "ACTIVE", "PAUSED")
	d.api("POST", "/v3/deployments/"+made.GUID+"/actions/cancel", nil, nil)
	d.ends(made, "FINALIZED", "CANCELED")
	return nil
}

func (d *daemon) killedHalfWay() []gap {
	d.t.Helper()
	made := d.deploys("hello-node", "rolling", nil)
	d.halfWay("hello-node")
	g := gap{from: time.Now()}
	d.kill()
	d.start()
	g.to = time.Now()
	d.t.Logf("there was no daemon for %v", g.to.Sub(g.from))
	d.ends(made, "FINALIZED", "DEPLOYED")
	return []gap{g}
}

// halfWay waits until a deployment wants three instances of five.
func (d *daemon) halfWay(app string) {
	d.t.Helper()
	eventually(d.t, 30*time.Second, func() string {
		if webs := d.webs(app); len(webs) == 1 || webs[len(webs)-1].Instances >= 3 {
			return ""
		}
		return "the deployment does not get on"
	})
}

// replaced fails when an instance is there that was before.
func replaced(t *testing.T, before, after []instance) {
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
func (d *daemon) clean(app string, n int) {
	d.t.Helper()
	eventually(d.t, 20*time.Second, func() string {
		var stats struct{ Resources, Stopping []instance }
		path := "/v3/apps/" + d.app(app) + "/processes/web/stats"
		if err := d.client().call(context.Background(), "GET", path, nil, &stats); err != nil {
			return err.Error()
		}
		if cells := d.containers(); len(stats.Resources) != n || len(stats.Stopping) > 0 || len(cells) != n {
			return fmt.Sprintf("got %+v and containers %v; want %d instances and nothing else", stats, cells, n)
		}
		return ""
	})
}
