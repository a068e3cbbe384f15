package deploy

import (
	"slices"
	"time"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// healthyInterval is how often LastHealthy is brought up to date: Cloud
// Controller's interval between two steps.
const healthyInterval = 5 * time.Second

// step returns the changes to make now. It reads only w.
func (w world) step() change {
	s := &step{world: w, was: w.Deployment, changed: map[string]cf.Process{}, gone: map[string]bool{}}
	s.new = slices.IndexFunc(w.Web, func(p webProcess) bool { return p.GUID == w.Deployment.WebProcess })
	if s.new < 0 {
		return change{}
	}
	s.Web = slices.Clone(w.Web)
	switch {
	case w.Deployment.State == cf.Canceling:
		s.cancel()
	case w.App.State != cf.Started: // it waits for the next start
	case w.Deployment.State == cf.Deploying:
		n := desiredInstances(&w.Deployment)
		if s.scale(n, n) {
			s.finalize()
		}
	case w.Deployment.State == cf.Prepaused:
		at := canaryStep(&w.Deployment)
		if s.scale(at.Canary+at.Original, at.Canary) {
			s.Deployment.LastHealthy = w.Now
			s.Deployment.Become(cf.Paused, string(cf.Paused), w.Now)
		}
	}
	return s.change()
}

type step struct {
	world
	new     int // index in Web of the deployment's process
	was     cf.Deployment
	changed map[string]cf.Process
	order   []string
	gone    map[string]bool
}

func (s *step) change() change {
	var c change
	for _, guid := range s.order {
		if s.gone[guid] {
			c.Delete = append(c.Delete, guid)
		} else if p, ok := s.changed[guid]; ok {
			c.Update = append(c.Update, p)
		}
	}
	d := s.Deployment
	if !c.empty() || d.State != s.was.State || d.Error != s.was.Error || !d.LastHealthy.Equal(s.was.LastHealthy) {
		c.Deployment = &d
	}
	return c
}

func (s *step) touch(guid string) {
	if !slices.Contains(s.order, guid) {
		s.order = append(s.order, guid)
	}
}

// resize changes the number of instances of web process i.
func (s *step) resize(i, n int) {
	p := &s.Web[i]
	if p.Instances == n {
		return
	}
	p.Instances = n
	s.touch(p.GUID)
	s.changed[p.GUID] = p.Process
}

func (s *step) destroy(i int) {
	s.Web[i].Instances = 0
	s.touch(s.Web[i].GUID)
	s.gone[s.Web[i].GUID] = true
}

// scale removes instances of older processes that new ones replace, and adds
// some of the new process: up to interim, of target instances in all. It reports
// whether interim instances of the new process are routable.
func (s *step) scale(target, interim int) (finished bool) {
	web, inFlight := s.Web[s.new], s.Deployment.Options.MaxInFlight
	n := web.count()
	// If fewer are routable, the others have not been checked yet.
	room := n.starting < inFlight && n.unhealthy == 0 && n.routable >= web.Instances-inFlight
	surplus := s.older() - max(target-n.routable, 0)
	if !room && surplus <= 0 {
		return false
	}
	s.Deployment.Error = ""
	s.reduce(surplus, s.routable()-target)
	if web.Instances >= interim && n.routable >= interim {
		return true
	}
	if room {
		s.resize(s.new, max(web.Instances, min(n.routable+inFlight, interim)))
		if len(s.order) > 0 || s.Now.Sub(s.Deployment.LastHealthy) >= healthyInterval {
			s.Deployment.LastHealthy = s.Now
		}
	}
	return false
}

// older is how many instances the other web processes want.
func (s *step) older() (n int) {
	for i, p := range s.Web {
		if i != s.new {
			n += p.Instances
		}
	}
	return n
}

// routable is how many instances of all web processes are.
func (s *step) routable() (n int) {
	for _, p := range s.Web {
		n += p.count().routable
	}
	return n
}

// reduce takes up to n instances of older processes away, spare of them such
// that are routable: Cloud Controller would take any. First come those of
// canaries that were superseded, which were not approved, then those of the
// oldest. What a deployment made and has no instances left goes; the oldest
// process stays until the end, to be canceled to.
func (s *step) reduce(n, spare int) {
	for _, i := range s.oldest() {
		p := s.Web[i]
		left := p.Instances
		for ; left > 0 && n > 0; n-- {
			if p.routableAt(left - 1) {
				if spare <= 0 {
					break
				}
				spare--
			}
			left--
		}
		if left == 0 && p.Instances > 0 && i > 0 {
			s.destroy(i)
			continue
		}
		s.resize(i, left)
	}
}

// oldest are the older web processes in the order in which they are reduced.
func (s *step) oldest() (order []int) {
	for i, p := range s.Web {
		if i != s.new && s.Superseded[p.GUID] == cf.Canceled {
			order = append(order, i)
		}
	}
	for i, p := range s.Web {
		if i != s.new && s.Superseded[p.GUID] != cf.Canceled {
			order = append(order, i)
		}
	}
	return order
}

// finalize keeps the new web process, and restarts the other processes with the
// deployed droplet.
func (s *step) finalize() {
	for i := range s.Web {
		if i != s.new {
			s.destroy(i)
		}
	}
	for _, p := range s.Others {
		if s.Revision != nil {
			p.Command, p.RevisionGUID = s.Revision.Commands[p.Type], s.Revision.GUID
		}
		web := s.Web[s.new]
		p.DropletGUID, p.Placement, p.Services, p.BindingForm = s.Deployment.DropletGUID, web.Placement, web.Services, web.BindingForm
		p.Rev++
		s.touch(p.GUID)
		s.changed[p.GUID] = p
	}
	s.Deployment.Become(cf.Deployed, string(cf.Deployed), s.Now)
}

// cancel goes back to the process that was before: the newest one of a
// superseded deployment that has an instance, or the oldest. While no instance
// of it is routable, but one may come to be, those of the others stay.
func (s *step) cancel() {
	prior := 0
	for i, p := range s.Web {
		if i != s.new && s.Superseded[p.GUID] == cf.Deployed && p.runs() {
			prior = i
		}
	}
	s.resize(prior, s.Deployment.OriginalInstances)
	n := s.Web[prior].count()
	if s.App.State == cf.Started && n.routable == 0 && s.Web[prior].mayBecomeRoutable() && s.Web[s.new].count().routable > 0 {
		return
	}
	for i := range s.Web {
		if i != prior {
			s.destroy(i)
		}
	}
	s.Deployment.Error = ""
	s.Deployment.Become(cf.Canceled, string(cf.Canceled), s.Now)
}

// mayBecomeRoutable reports whether an instance can still become routable by itself:
// it has not crashed too often, and has a cell.
func (w webProcess) mayBecomeRoutable() bool {
	hopeless := 0
	for _, a := range w.Actuals {
		if a.Index < w.Instances && (a.State == lrp.Crashed || a.State == lrp.Unclaimed && a.PlacementError != "") {
			hopeless++
		}
	}
	return hopeless < w.Instances
}

// runs reports whether an instance runs, routable or not.
func (w webProcess) runs() bool {
	return slices.ContainsFunc(w.Actuals, func(a *lrp.Actual) bool {
		return a.State == lrp.Running && !a.Stopping && a.Index < w.Instances
	})
}
