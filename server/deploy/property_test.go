package deploy

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// model is an app in memory whose deployments are stepped while its instances
// come and go as they please. A step that a killed daemon did not write is one
// that is not applied.
type model struct {
	w        world
	before   int // instances of the app
	inFlight int // of all deployments
	extra    int // a canary deployment has one more
	made     int
	crashes  int // that may still come
}

func newModel(t *rapid.T) *model {
	m := &model{w: world{Now: now, App: cf.App{State: cf.Started}, Superseded: map[string]cf.DeploymentState{}}, before: rapid.IntRange(1, 8).Draw(t, "instances")}
	m.w.Web = []webProcess{{Process: cf.Process{Resource: cf.Resource{GUID: "web-0"}, Type: "web", Instances: m.before}}}
	m.reconcile(0)
	for _, a := range m.w.Web[0].Actuals {
		a.State, a.Ready, a.Address = lrp.Running, true, address
	}
	m.deploy(t)
	return m
}

// deploy begins a deployment, as the API does.
func (m *model) deploy(t *rapid.T) {
	if d := m.w.Deployment; d.WebProcess != "" {
		m.w.Superseded[d.WebProcess] = cf.Canceled
		if d.State == cf.Deploying {
			m.w.Superseded[d.WebProcess] = cf.Deployed
		}
	}
	m.made++
	guid := fmt.Sprintf("web-%d", m.made)
	d := cf.Deployment{Strategy: cf.Rolling, State: cf.Deploying, StatusValue: cf.Active, StatusReason: "DEPLOYING", WebProcess: guid, OriginalInstances: m.before,
		Options: cf.DeploymentOptions{MaxInFlight: rapid.IntRange(1, 4).Draw(t, "max in flight")}}
	if rapid.Bool().Draw(t, "canary") {
		d.Strategy, d.State, d.CanaryStep, m.extra = cf.Canary, cf.Prepaused, 1, 1
		for last := 0; last < 100 && rapid.Bool().Draw(t, "another weight"); {
			last = rapid.IntRange(last+1, 100).Draw(t, "weight")
			d.Options.Weights = append(d.Options.Weights, last)
		}
	}
	m.inFlight += d.Options.MaxInFlight
	m.w.Deployment = d
	m.w.Web = append(m.w.Web, webProcess{Process: cf.Process{Resource: cf.Resource{GUID: guid}, Type: "web", Instances: FirstInstances(&d)}})
}

// step applies a step, unless the daemon is killed before it is written.
func (m *model) step(written bool) {
	c := m.w.step()
	if !written {
		return
	}
	for _, guid := range c.Delete {
		for i, p := range m.w.Web {
			if p.GUID == guid {
				m.w.Web = append(m.w.Web[:i:i], m.w.Web[i+1:]...)
				break
			}
		}
	}
	for _, p := range c.Update {
		for i := range m.w.Web {
			if m.w.Web[i].GUID == p.GUID {
				m.w.Web[i].Process = p
			}
		}
	}
	if c.Deployment != nil {
		m.w.Deployment = *c.Deployment
	}
}

// reconcile makes rows for the instances that the process i wants, and drops the
// others.
func (m *model) reconcile(i int) {
	p := &m.w.Web[i]
	var rows []*lrp.Actual
	for n := range p.Instances {
		if n < len(p.Actuals) {
			rows = append(rows, p.Actuals[n])
		} else {
			rows = append(rows, &lrp.Actual{Key: lrp.Key{ProcessGUID: p.GUID, Index: n}, State: lrp.Claimed})
		}
	}
	p.Actuals = rows
}

// happen lets something happen that is not the deployment's doing.
func (m *model) happen(t *rapid.T) {
	i := rapid.IntRange(0, len(m.w.Web)-1).Draw(t, "process")
	p := &m.w.Web[i]
	switch what := rapid.IntRange(0, 9).Draw(t, "event"); {
	case what < 4:
		m.reconcile(i)
	case len(p.Actuals) == 0:
	case what < 8:
		a := p.Actuals[rapid.IntRange(0, len(p.Actuals)-1).Draw(t, "instance")]
		a.Ready, a.State, a.Address = a.State == lrp.Running, lrp.Running, address
	case what == 8 && m.crashes > 0 && i == len(m.w.Web)-1:
		m.crashes--
		a := p.Actuals[rapid.IntRange(0, len(p.Actuals)-1).Draw(t, "instance")]
		a.Ready, a.State = false, lrp.Crashed
	default:
		m.w.Now = m.w.Now.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "seconds")) * time.Second)
	}
}

// check is what must hold at every moment.
func (m *model) check(t *rapid.T) {
	wanted, routable := 0, 0
	for _, p := range m.w.Web {
		wanted += p.Instances
		routable += p.count().routable
	}
	if most := m.before + m.inFlight + m.extra; wanted > most {
		t.Fatalf("%d instances are wanted; want at most %d", wanted, most)
	}
	if routable < m.before && m.crashes == 0 {
		t.Fatalf("%d instances are routable; want %d: %+v", routable, m.before, m.w.Web)
	}
}

// finish lets everything that is wanted run, until the deployment has ended.
func (m *model) finish(t *rapid.T) {
	for range 200 {
		if m.w.Deployment.StatusValue == cf.Finalized {
			break
		}
		d := &m.w.Deployment
		if d.State == cf.Paused {
			d.State = cf.Deploying
			if d.CanaryStep < len(d.Options.Weights) {
				d.State = cf.Prepaused
				d.CanaryStep++
			}
		}
		m.step(true)
		for i := range m.w.Web {
			m.reconcile(i)
			for _, a := range m.w.Web[i].Actuals {
				a.State, a.Ready, a.Address = lrp.Running, true, address
			}
		}
		m.check(t)
	}
	if d := m.w.Deployment; d.State != cf.Deployed || len(m.w.Web) != 1 || m.w.Web[0].GUID != d.WebProcess || m.w.Web[0].Instances != m.before {
		t.Fatalf("the end is %s with %+v; want %d instances of %s", d.State, m.w.Web, m.before, d.WebProcess)
	}
}

// TestADeploymentEnds lets deployments be superseded, and the daemon be killed,
// at random points: there are never too few routable instances nor too many at
// all, and the last deployment ends.
func TestADeploymentEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			if m.w.Deployment.StatusValue == cf.Active && rapid.IntRange(0, 29).Draw(t, "supersede") == 0 {
				m.deploy(t)
			}
			if m.w.Deployment.StatusValue == cf.Active {
				m.step(rapid.IntRange(0, 4).Draw(t, "written") > 0)
			}
			m.check(t)
			m.happen(t)
		}
		m.finish(t)
	})
}

// TestADeploymentEndsAfterCrashes lets instances of the new process crash, as
// long as they do not for ever.
func TestADeploymentEndsAfterCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		m.crashes = rapid.IntRange(1, 5).Draw(t, "crashes")
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			if m.w.Deployment.StatusValue == cf.Active {
				m.step(rapid.IntRange(0, 4).Draw(t, "written") > 0)
			}
			m.happen(t)
		}
		m.crashes = max(m.crashes, 1) // the rest is not checked for who is routable
		m.finish(t)
	})
}

// TestACanceledDeploymentEnds cancels at a random point: what is gone back to
// ends with all instances, and something is routable all the time.
func TestACanceledDeploymentEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		canceled := false
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			if d := &m.w.Deployment; d.StatusValue == cf.Active && !canceled && rapid.IntRange(0, 9).Draw(t, "cancel") == 0 {
				canceled = true
				d.Become(cf.Canceling, "CANCELING", m.w.Now)
			}
			if m.w.Deployment.StatusValue == cf.Active {
				m.step(rapid.IntRange(0, 4).Draw(t, "written") > 0)
			}
			routable := 0
			for _, p := range m.w.Web {
				routable += p.count().routable
			}
			if routable == 0 {
				t.Fatalf("nothing is routable: %+v", m.w.Web)
			}
			m.happen(t)
		}
	})
}
