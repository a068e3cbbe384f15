package deploy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// web makes a web process of a word like "old:3 RRS" : its GUID, its instances
// and how each is: R routable, r running but not ready, S starting, C crashed, D
// denied a place, T stopping, "-" not there.
func web(text string) webProcess {
	name, states, _ := strings.Cut(text, " ")
	guid, n, _ := strings.Cut(name, ":")
	w := webProcess{Process: cf.Process{Resource: cf.Resource{GUID: guid}, Type: "web"}}
	fmt.Sscan(n, &w.Instances)
	for i, s := range states {
		if s != '-' {
			a := actuals[s]
			a.Index = i
			w.Actuals = append(w.Actuals, &a)
		}
	}
	return w
}

var actuals = map[rune]lrp.Actual{
	'R': {State: lrp.Running, Ready: true, Address: address}, 'r': {State: lrp.Running}, 'S': {State: lrp.Claimed}, 'U': {State: lrp.Unclaimed},
	'C': {State: lrp.Crashed}, 'D': {State: lrp.Unclaimed, PlacementError: "insufficient resources"}, 'T': {State: lrp.Running, Ready: true, Address: address, Stopping: true},
}

func said(c change) string {
	var parts []string
	for _, p := range c.Update {
		parts = append(parts, fmt.Sprintf("%s:%d", p.GUID, p.Instances))
	}
	for _, g := range c.Delete {
		parts = append(parts, "-"+g)
	}
	if c.Deployment != nil && (c.Deployment.State != cf.Deploying || len(parts) == 0) {
		parts = append(parts, string(c.Deployment.State)+"/"+c.Deployment.StatusReason)
	}
	return strings.Join(parts, " ")
}

var now = time.Unix(1_800_000_000, 0)

const address = "10.0.0.9"

func rolling(inFlight int) cf.Deployment {
	return cf.Deployment{AppGUID: "app", Strategy: cf.Rolling, State: cf.Deploying, StatusValue: cf.Active, StatusReason: "DEPLOYING", WebProcess: "new",
		LastHealthy: now, OriginalInstances: 3, Options: cf.DeploymentOptions{MaxInFlight: inFlight}}
}

func canary(step int, weights ...int) cf.Deployment {
	d := rolling(1)
	d.Strategy, d.State, d.CanaryStep, d.Options.Weights, d.OriginalInstances = cf.Canary, cf.Prepaused, step, weights, 10
	return d
}

func canceling() cf.Deployment {
	d := rolling(1)
	d.Become(cf.Canceling, "CANCELING", now)
	return d
}

func TestStep(t *testing.T) {
	for _, c := range []struct {
		name string
		d    cf.Deployment
		web  string
		want string
	}{
		{"nothing has started yet", rolling(1), "old:3 RRR, new:1 -", ""},
		{"it starts", rolling(1), "old:3 RRR, new:1 S", ""},
		{"it runs, but is not ready", rolling(1), "old:3 RRR, new:1 r", ""},
		{"the first is routable", rolling(1), "old:3 RRR, new:1 R", "old:2 new:2"},
		{"the second is on its way", rolling(1), "old:2 RR, new:2 RS", ""},
		{"the last is routable", rolling(1), "old:1 R, new:3 RRR", "-old DEPLOYED/DEPLOYED"},
		{"one crashed", rolling(1), "old:2 RR, new:2 RC", ""},
		{"one found no place", rolling(1), "old:2 RR, new:2 RD", ""},
		{"one is being replaced", rolling(1), "old:2 RR, new:2 RT", ""},
		{"two at a time", rolling(2), "old:3 RRR, new:2 RS", "old:2 new:3"},
		{"two at a time, both routable", rolling(2), "old:3 RRR, new:2 RR", "old:1 new:3"},
		{"more in flight than there are", rolling(9), "old:3 RRR, new:3 RRR", "-old DEPLOYED/DEPLOYED"},
		{"a superseded one goes after the oldest", rolling(1), "old:2 RR, mid:1 R, new:1 R", "old:1 new:2"},
		{"a superseded one goes when it has none left", rolling(1), "old:0 , mid:2 RR, new:2 RR", "mid:1 new:3"},
		{"a superseded one has none left", rolling(1), "old:0 , mid:1 R, new:3 RRR", "-mid -old DEPLOYED/DEPLOYED"},
		{"a superseded canary goes first", rolling(1), "old:3 RRR, bad:1 R, new:1 S", "-bad"},
		{"a superseded canary goes as it is made up for", rolling(1), "old:2 RR, bad:2 RR, new:1 S", "bad:1"},
		{"the only canary", canary(1), "old:10 RRRRRRRRRR, new:1 R", "PAUSED/PAUSED"},
		{"a canary of 20 %", canary(1, 20, 60), "old:10 RRRRRRRRRR, new:1 R", "new:2 PREPAUSED/DEPLOYING"},
		{"a canary of 20 %, both there", canary(1, 20, 60), "old:10 RRRRRRRRRR, new:2 RR", "old:9 PAUSED/PAUSED"},
		{"a canary of 100 %", canary(1, 100), "old:1 R, new:10 RRRRRRRRRR", "old:0 PAUSED/PAUSED"},
		{"canceled", canceling(), "old:1 R, new:2 RR", "old:3 -new CANCELED/CANCELED"},
		{"canceled to what is not there", canceling(), "old:0 , new:3 RRR", "old:3 CANCELING/CANCELING"},
		{"canceled to what still stops", canceling(), "old:3 TTT, new:3 RRR", ""},
		{"canceled to what starts", canceling(), "old:3 SSS, new:3 RRR", ""},
		{"canceled to what came", canceling(), "old:3 RSS, new:3 RRR", "-new CANCELED/CANCELED"},
		{"canceled to what cannot be", canceling(), "old:3 CCC, new:3 RRR", "-new CANCELED/CANCELED"},
		{"canceled to a superseded one", canceling(), "old:1 R, mid:1 R, new:1 R", "mid:3 -old -new CANCELED/CANCELED"},
	} {
		w := world{Now: now, App: cf.App{State: cf.Started}, Deployment: c.d, Superseded: map[string]cf.DeploymentState{"mid": cf.Deployed, "bad": cf.Canceled}}
		for _, text := range strings.Split(c.web, ", ") {
			w.Web = append(w.Web, web(text))
		}
		if got := said(w.step()); got != c.want {
			t.Errorf("%s: %s: got %q; want %q", c.name, c.web, got, c.want)
		}
		w.App.State = cf.Stopped
		if got := w.step(); c.d.State != cf.Canceling && !got.empty() {
			t.Errorf("%s, stopped: got %q; want nothing", c.name, said(got))
		}
	}
}

func TestTheOtherProcessesFollow(t *testing.T) {
	d := rolling(1)
	d.DropletGUID, d.RevisionGUID = "droplet", "revision"
	w := world{Now: now, App: cf.App{State: cf.Started}, Deployment: d, Web: []webProcess{web("old:1 R"), web("new:3 RRR")},
		Others: []cf.Process{{Resource: cf.Resource{GUID: "worker"}, Type: "worker", Rev: 4}}, Revision: &cf.Revision{Resource: cf.Resource{GUID: "revision"}, Commands: map[string]string{"worker": "work"}}}
	c := w.step()
	if len(c.Update) != 1 {
		t.Fatalf("got %v; want the worker updated", said(c))
	}
	p := c.Update[0]
	if p.Command != "work" || p.DropletGUID != "droplet" || p.RevisionGUID != "revision" || p.Rev != 5 {
		t.Errorf("got %+v; want what was deployed, restarted", p)
	}
}

func TestCanarySteps(t *testing.T) {
	for _, c := range []struct {
		instances, weight int
		want              share
	}{{10, 1, share{1, 10}}, {10, 25, share{3, 8}}, {10, 100, share{10, 0}}, {1, 50, share{1, 1}}, {3, 34, share{1, 3}}} {
		d := canary(1, c.weight)
		d.OriginalInstances = c.instances
		if got := canaryStep(&d); got != c.want {
			t.Errorf("%d %% of %d: got %+v; want %+v", c.weight, c.instances, got, c.want)
		}
	}
	if d := canary(1); canaryStep(&d) != (share{1, 10}) {
		t.Errorf("got %+v; want one beside all", canaryStep(&d))
	}
}
