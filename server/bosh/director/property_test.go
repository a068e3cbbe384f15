package director

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cupola/server/bosh/agent"
	"cupola/server/bosh/manifest"
	"cupola/store/cf"
)

// randomFleet is a fleet whose processes come and go late and as they please, whose
// scripts end in any order, and whose daemon may be killed before it writes what
// a step said.
type randomFleet struct {
	*fleet
	rt      *rapid.T
	groups  []group
	kinds   map[string]manifest.Lifecycle
	procs   map[string]string // the digest of what is up, by instance
	version int
	calm    bool // nothing fails any longer
}

// everyScript makes each phase last for more than one step.
var everyScript = []agent.Script{agent.PreStart, agent.PostStart, agent.PostDeploy, agent.PreStop, agent.Drain, agent.PostStop}

func newRandomFleet(t *rapid.T) *randomFleet {
	s := &randomFleet{rt: t, procs: map[string]string{}, kinds: map[string]manifest.Lifecycle{}}
	for _, name := range []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "groups")] {
		s.groups = append(s.groups, group{Name: name, Serial: rapid.Bool().Draw(t, "serial"), Canaries: rapid.IntRange(0, 2).Draw(t, "canaries"), MaxInFlight: rapid.IntRange(1, 3).Draw(t, "max in flight")})
	}
	s.fleet = newFleet(t, s.groups...)
	s.deploy()
	return s
}

// deploy asks for another size, and often for another version, of every group.
func (s *randomFleet) deploy() {
	s.order(Deploy, slices.Clone(s.groups)...)
	if s.version == 0 || rapid.Bool().Draw(s.rt, "new version") {
		s.version++
	}
	for n, g := range s.groups {
		s.want(g.Name, rapid.IntRange(0, 5).Draw(s.rt, "instances"), fmt.Sprint("v", s.version), everyScript...)
		kind := rapid.SampledFrom([]manifest.Lifecycle{manifest.Service, manifest.Service, manifest.Service, manifest.Errand, manifest.AutoErrand}).Draw(s.rt, "lifecycle")
		s.kinds[g.Name], s.groups[n].Lifecycle = kind, kind
	}
	for n := range s.rows {
		r := &s.rows[n]
		r.Lifecycle, r.AZ = string(s.kinds[r.Group]), fmt.Sprint("z", r.Index%2)
		s.broken[r.Next] = !s.calm && rapid.IntRange(0, 9).Draw(s.rt, "broken") == 0
	}
}

func (s *randomFleet) look() world {
	w := s.world()
	for n := range w.Instances {
		i := &w.Instances[n]
		up := s.procs[i.GUID]
		i.Empty, i.Running = up == "", up != "" && up == i.Digest && !s.broken[up]
	}
	return w
}

// step does a step, or has the daemon killed before it is written.
func (s *randomFleet) step(written bool) (changes, bool) {
	if s.task.State != cf.BOSHProcessing {
		return changes{}, false
	}
	before := slices.Clone(s.rows)
	c := s.look().step()
	if !written || c.empty() {
		return c, false
	}
	s.apply(c)
	s.check(before, c)
	return c, true
}

// nextPhases are the phases that an instance may be in one step later.
var nextPhases = map[cf.BOSHPhase][]cf.BOSHPhase{
	cf.BOSHStopped: {cf.BOSHPreStart}, cf.BOSHPreStart: {cf.BOSHStarting, cf.BOSHStopping}, cf.BOSHStarting: {cf.BOSHPostStart, cf.BOSHStopping},
	cf.BOSHPostStart: {cf.BOSHRunning, cf.BOSHPreStop}, cf.BOSHRunning: {cf.BOSHPreStop}, cf.BOSHPreStop: {cf.BOSHDraining},
	cf.BOSHDraining: {cf.BOSHStopping}, cf.BOSHStopping: {cf.BOSHPostStop}, cf.BOSHPostStop: {cf.BOSHStopped, cf.BOSHPreStart},
}

// check holds what a step did against BOSH's rules.
func (s *randomFleet) check(before []cf.BOSHInstance, c changes) {
	failed := slices.ContainsFunc(before, func(r cf.BOSHInstance) bool { return r.TaskGUID == s.task.GUID && r.Failure != "" })
	for _, r := range c.Instances {
		was := before[slices.IndexFunc(before, func(o cf.BOSHInstance) bool { return o.GUID == r.GUID })]
		if r.Phase != was.Phase && !slices.Contains(nextPhases[was.Phase], r.Phase) {
			s.rt.Fatalf("%s went from %s to %s", r.GUID, was.Phase, r.Phase)
		}
		if failed && r.Chosen && !was.Chosen {
			s.rt.Fatalf("%s was begun after a failure", r.GUID)
		}
	}
	for _, call := range c.Calls {
		if down := call.Script == string(agent.PreStart) || call.Script == string(agent.PostStop) || call.Phase == cf.BOSHErrand; down && s.procs[call.InstanceGUID] != "" {
			s.rt.Fatalf("%s of %s is called while its processes are up", call.Script, call.InstanceGUID)
		}
	}
	for _, r := range c.Delete {
		if s.procs[r.GUID] != "" {
			s.rt.Fatalf("%s is deleted while its processes are up", r.GUID)
		}
	}
	for _, g := range s.groups {
		s.checkGroup(g)
	}
}

func (s *randomFleet) checkGroup(g group) {
	if s.plan.Stage == errands {
		return // they run at once
	}
	chosen, canaries, azs := 0, 0, map[string]bool{}
	for _, r := range s.rows {
		if r.Group != g.Name || !r.Chosen {
			continue
		}
		chosen++
		if r.Canary {
			canaries++
		} else if r.Goal != cf.BOSHGone {
			azs[r.AZ] = true
		}
	}
	if chosen > g.MaxInFlight || canaries > g.Canaries || canaries > 0 && len(azs) > 0 || len(azs) > 1 {
		s.rt.Fatalf("of %s %d are chosen, of them %d canaries, in the AZs %v; want %d at most, %d canaries, and one AZ\n%+v", g.Name, chosen, canaries, azs, g.MaxInFlight, g.Canaries, s.rows)
	}
}

// reconcile brings what runs of one instance nearer to its phase.
func (s *randomFleet) reconcile(r *cf.BOSHInstance) {
	if up(r.Phase) {
		s.procs[r.GUID] = r.Digest
	} else {
		delete(s.procs, r.GUID)
	}
}

// end ends an open call.
func (s *randomFleet) end(n int) {
	c := &s.calls[n]
	if c.State != cf.BOSHCalling {
		return
	}
	c.State, c.EndedAt, c.Result = cf.BOSHSucceeded, s.now, []byte("0")
	if s.calm {
		return
	}
	if rapid.IntRange(0, 9).Draw(s.rt, "fails") == 0 {
		c.State, c.Reason = cf.BOSHFailed, "exit status 1"
	}
	if c.Script == string(agent.Drain) {
		c.Result = []byte(rapid.SampledFrom([]string{"0", "3", "-2", "what"}).Draw(s.rt, "drain says"))
	}
}

// finish goes on until the task ends; nothing is late any longer.
func (s *randomFleet) finish() {
	for range 3000 {
		c, wrote := s.step(true)
		if s.task.State != cf.BOSHProcessing {
			return
		}
		for n := range s.rows {
			s.reconcile(&s.rows[n])
		}
		for n := range s.calls {
			s.end(n)
		}
		if !wrote && c.Wake.After(s.now) {
			s.now = c.Wake
		}
	}
	s.rt.Fatalf("the task does not end: %+v\n%+v\n%+v", s.task, s.rows, s.calls)
}

// cancel is what Cancel does to rows.
func (s *randomFleet) cancel() {
	s.task.State = cf.BOSHCancelled
	s.calls = slices.DeleteFunc(s.calls, func(c cf.BOSHCall) bool { return c.State == cf.BOSHCalling })
	for n := range s.rows {
		if r := &s.rows[n]; r.Chosen {
			r.Chosen, r.Failure = false, "cancelled"
		}
	}
}

func TestAnyWeather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newRandomFleet(t)
		pick := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) }
		t.Repeat(map[string]func(*rapid.T){
			"step":   func(*rapid.T) { s.step(true) },
			"killed": func(*rapid.T) { s.step(false) },
			"reconcile": func(*rapid.T) {
				if len(s.rows) > 0 {
					s.reconcile(&s.rows[pick(len(s.rows), "row")])
				}
			},
			"end": func(*rapid.T) {
				if len(s.calls) > 0 {
					s.end(pick(len(s.calls), "call"))
				}
			},
			"wait": func(*rapid.T) { s.now = s.now.Add(time.Duration(pick(40, "seconds")) * time.Second) },
			"some": func(*rapid.T) {
				for range 5 {
					s.step(true)
					for n := range s.rows {
						s.reconcile(&s.rows[n])
					}
					for n := range s.calls {
						s.end(n)
					}
				}
			},
			"deploy": func(*rapid.T) {
				if s.task.State == cf.BOSHProcessing {
					s.cancel()
				}
				s.deploy()
			},
		})
		s.calm = true
		if s.task.State == cf.BOSHProcessing {
			s.finish()
		}
		s.deploy()
		s.finish()
		s.checkDone()
	})
}

// checkDone holds what a good deploy came to against what it was to come to.
func (s *randomFleet) checkDone() {
	if s.task.State != cf.BOSHDone {
		s.rt.Fatalf("a good deploy ended with %s: %s", s.task.State, s.task.Result)
	}
	left := map[string]bool{}
	for _, r := range s.rows {
		left[r.GUID] = true
		resting := r.Lifecycle != string(manifest.Service) && r.Phase == cf.BOSHStopped && s.procs[r.GUID] == ""
		if !resting && !r.UpToDate() || r.Goal == cf.BOSHGone || r.Chosen {
			s.rt.Fatalf("a good deploy left %+v", r)
		}
		if r.Lifecycle == string(manifest.AutoErrand) && r.Digest != r.Next {
			s.rt.Fatalf("the auto-errand did not run: %+v", r)
		}
	}
	for guid := range s.procs {
		if !left[guid] {
			s.rt.Fatalf("a process of %s is left, which is gone", guid)
		}
	}
	for _, c := range s.calls {
		if c.State == cf.BOSHCalling {
			s.rt.Fatalf("a call is left open: %+v", c)
		}
	}
}
