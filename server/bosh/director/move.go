package director

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cupola/server/bosh/agent"
	"cupola/store/cf"
)

// scripts are what is run in a phase.
var scripts = map[cf.BOSHPhase]agent.Script{
	cf.BOSHPreStart: agent.PreStart, cf.BOSHPostStart: agent.PostStart,
	cf.BOSHPreStop: agent.PreStop, cf.BOSHDraining: agent.Drain, cf.BOSHPostStop: agent.PostStop,
}

// move takes an instance as far as it gets now.
func (s *step) move(i *item) {
	for i.Chosen && !i.gone {
		was := i.Phase
		s.moveOnce(i)
		if i.Phase == was {
			return
		}
	}
}

// moveOnce takes an instance to its next phase, if it can go there.
func (s *step) moveOnce(i *item) {
	if s.mustStop(i) {
		s.stop(i)
		return
	}
	switch i.Phase {
	case cf.BOSHStopped:
		s.atRest(i)
	case cf.BOSHPreStart:
		s.after(i, cf.BOSHStarting)
	case cf.BOSHStarting:
		s.starting(i)
	case cf.BOSHPostStart:
		s.after(i, cf.BOSHRunning)
	case cf.BOSHRunning:
		s.finish(i)
	case cf.BOSHPreStop:
		s.after(i, cf.BOSHDraining)
	case cf.BOSHDraining:
		s.drain(i)
	case cf.BOSHStopping:
		if i.Empty {
			s.enter(i, cf.BOSHPostStop)
		}
	case cf.BOSHPostStop:
		s.after(i, cf.BOSHStopped)
	}
}

// mustStop reports whether the instance's running containers must stop first.
func (s *step) mustStop(i *item) bool {
	switch i.Phase {
	case cf.BOSHPreStart, cf.BOSHStarting, cf.BOSHPostStart, cf.BOSHRunning:
		return i.goal() != cf.BOSHStarted || i.Digest != i.BOSHInstance.Next || i.Renew != i.Renewed || s.newDisk(i) != ""
	}
	return false
}

// stop begins to take an instance down. Only one that ran is asked to drain.
func (s *step) stop(i *item) {
	if i.Phase == cf.BOSHRunning || i.Phase == cf.BOSHPostStart {
		s.enter(i, cf.BOSHPreStop)
		return
	}
	if !calling(i) {
		s.enter(i, cf.BOSHStopping)
	}
}

func calling(i *item) bool {
	return slices.ContainsFunc(i.Calls, func(c cf.BOSHCall) bool { return c.State == cf.BOSHCalling })
}

// newDisk returns the GUID of the disk that will replace that of an instance; "" for none.
func (s *step) newDisk(i *item) string {
	if to := s.Plan.NewDisks[i.GUID]; to != i.DiskGUID {
		return to
	}
	return ""
}

// atRest begins the way up, or ends the way down. Before either an instance gets its new
// disk, if it needs one.
func (s *step) atRest(i *item) {
	if to := s.newDisk(i); to != "" {
		if i.BOSHInstance == i.was { // else it is not written yet that it is at rest
			s.out.Copies = append(s.out.Copies, diskCopy{Instance: i.was, To: to})
		}
		return
	}
	switch i.goal() {
	case cf.BOSHGone:
		i.gone = true
		s.out.Delete = append(s.out.Delete, i.BOSHInstance)
		s.event(s.stage(i), i, "finished", "")
		s.noteOrphan(i)
	case cf.BOSHHalted:
		s.finish(i)
		if !i.service() {
			i.Digest, i.TaskGUID = "", "" // as an errand it has not run
		}
	case cf.BOSHStarted:
		if i.instance.Next == nil && i.Fault != "" {
			s.fail(i, i.Fault)
			return
		}
		if i.DiskGUID != "" && i.instance.Next != nil && i.instance.Next.StoreMB == 0 {
			s.out.Orphans = append(s.out.Orphans, i.DiskGUID)
			i.DiskGUID = ""
		}
		if slices.Contains(s.Plan.Discard, i.GUID) {
			s.discard(i)
		}
		i.Digest, i.Renewed, i.Spec = i.BOSHInstance.Next, i.Renew, i.instance.Next
		s.enter(i, cf.BOSHPreStart)
	}
}

// noteOrphan reports that the disk of a deleted instance is kept.
func (s *step) noteOrphan(i *item) {
	if i.DiskGUID == "" || s.Plan.DropDisks {
		return
	}
	s.out.Events = append(s.out.Events, orphanEvents(&s.Task, &i.BOSHInstance)...)
}

// orphanEvents tell that the disk of an instance is kept, but no longer its own.
func orphanEvents(t *cf.BOSHTask, r *cf.BOSHInstance) (events []cf.BOSHTaskEvent) {
	text := fmt.Sprintf("%s of %s/%d, kept for %d days", r.DiskGUID, r.Group, r.Index, KeepOrphans/(24*time.Hour))
	for _, state := range []string{"started", "finished"} {
		events = append(events, cf.BOSHTaskEvent{TaskGUID: t.GUID, Stage: "Orphaning disks", Subject: text, State: state})
	}
	return events
}

// enter brings an instance to a phase, and has its scripts called.
func (s *step) enter(i *item, phase cf.BOSHPhase) {
	i.Phase, i.Since = phase, s.Now
	i.Running, i.Empty = false, false // unknown until the next look
	s.forget(i)
	script := scripts[phase]
	if script == "" || i.Spec == nil || s.skips(i, script) {
		return
	}
	for _, job := range i.Spec.With(script) {
		call := agent.Call{Job: job, Script: script}
		if script == agent.Drain {
			call = agent.DrainCall(job, i.changes(), false)
		}
		s.call(i, phase, i.Digest, call)
	}
}

// skips reports whether the task leaves out a script of an instance.
func (s *step) skips(i *item, script agent.Script) bool {
	switch script {
	case agent.PreStop, agent.Drain:
		return s.Plan.SkipDrain || slices.Contains(s.Plan.Unresponsive, i.GUID)
	case agent.PostStop:
		return slices.Contains(s.Plan.Unresponsive, i.GUID)
	}
	return false
}

// changes reports whether an instance stops to become another.
func (i *item) changes() bool { return i.goal() == cf.BOSHStarted && i.Digest != i.BOSHInstance.Next }

func (s *step) forget(i *item) {
	for _, c := range i.Calls {
		s.out.Forget = append(s.out.Forget, c.GUID)
	}
	i.Calls = nil
}

func (s *step) call(i *item, phase cf.BOSHPhase, digest string, c agent.Call) {
	row := cf.BOSHCall{InstanceGUID: i.GUID, Phase: phase, Digest: digest, Job: c.Job, Process: c.Process, Script: string(c.Script), Args: c.Args, State: cf.BOSHCalling}
	s.out.Calls = append(s.out.Calls, row)
	i.Calls = append(i.Calls, row)
}

// after goes on to the next phase when the scripts of this one have ended well.
func (s *step) after(i *item, next cf.BOSHPhase) {
	if calling(i) {
		return
	}
	if why := faults(i.Calls); why != "" {
		s.fail(i, why)
		return
	}
	s.enter(i, next)
}

// faults says in BOSH's words which calls failed; "" when none did.
func faults(calls []cf.BOSHCall) string {
	var bad, good, unmade []string
	for _, c := range calls {
		switch {
		case c.State == cf.BOSHFailed && !ran(c.Reason):
			unmade = append(unmade, fmt.Sprintf("The %s script of job %s did not run: %s", c.Script, c.Job, c.Reason))
		case c.State == cf.BOSHFailed:
			bad = append(bad, c.Job)
		default:
			good = append(good, c.Job)
		}
	}
	if len(bad) == 0 {
		return strings.Join(unmade, "\n")
	}
	text := fmt.Sprintf("%d of %d %s scripts failed. Failed Jobs: %s.", len(bad), len(calls), calls[0].Script, strings.Join(bad, ", "))
	if len(good) > 0 {
		text += " Successful Jobs: " + strings.Join(good, ", ") + "."
	}
	return strings.Join(append([]string{text}, unmade...), "\n")
}

// ran reports whether a program ran, by the reason for its failure.
func ran(reason string) bool {
	return !slices.ContainsFunc(beforeRunning, func(text string) bool { return strings.Contains(reason, text) })
}

// beforeRunning are what the scheduler and the cell say of a container in which
// nothing ran.
var beforeRunning = []string{"insufficient resources", "found no compatible cell", "failed to create container", "failed to run container", "failed to create volume mounted files",
	"failed to mount volume", "failed to create credentials directory", "failed to download cached artifacts"}

// steady is how long processes must have run at least when an instance comes up, unless
// its watch time begins earlier. One that crashes at once and is started again runs for
// moments, too.
const steady = 10 * time.Second

// starting waits until all processes run, and have for a while.
func (s *step) starting(i *item) {
	w := s.watchOf(i)
	waited := s.Now.Sub(i.Since)
	good := later(i.Since.Add(w.Low), i.RunsSince.Add(min(w.Low, steady)))
	late := waited >= w.High
	switch {
	case i.Running && (!s.Now.Before(good) || late && !i.Crashed):
		s.enter(i, cf.BOSHPostStart)
	case i.Running && !late:
		s.wakeAt(good)
		s.wakeAt(i.Since.Add(w.High))
	case late:
		why := "Review logs for failed jobs: " + strings.Join(i.jobs(), ", ")
		if i.Unmade != "" {
			why = "A container was not made: " + i.Unmade
		}
		s.fail(i, fmt.Sprintf("'%s/%d (%s)' is not running after update. %s", i.Group, i.Index, i.GUID, why))
	default:
		s.wakeAt(i.Since.Add(w.High))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (i *item) jobs() (names []string) {
	if i.Spec == nil {
		return nil
	}
	for _, j := range i.Spec.Jobs {
		names = append(names, j.Name)
	}
	return names
}

// drain goes on when each drain script has said that it is done, and the time
// that it asked for has passed.
func (s *step) drain(i *item) {
	latest := map[string]cf.BOSHCall{}
	for _, c := range i.Calls {
		latest[c.Job] = c
	}
	done := true
	var bad []cf.BOSHCall
	for _, job := range i.jobs() {
		c, ok := latest[job]
		if !ok {
			continue
		}
		ready, err := s.drained(i, c)
		if err != nil {
			c.State = cf.BOSHFailed
			bad = append(bad, c)
		}
		done = done && ready
	}
	switch {
	case len(bad) > 0 && !calling(i):
		s.fail(i, faults(bad))
	case done && len(bad) == 0:
		s.enter(i, cf.BOSHStopping)
	}
}

// drained reports whether a job is drained; it asks again where it is to.
func (s *step) drained(i *item, c cf.BOSHCall) (bool, error) {
	switch c.State {
	case cf.BOSHCalling:
		return false, nil
	case cf.BOSHFailed:
		return false, fmt.Errorf("drain of %s: %s", c.Job, c.Reason)
	}
	wait, again, err := agent.DrainResult(c.Result)
	if err != nil {
		return false, err
	}
	if at := c.EndedAt.Add(wait); s.Now.Before(at) {
		s.wakeAt(at)
		return false, nil
	}
	if again {
		s.out.Forget = append(s.out.Forget, c.GUID)
		i.Calls = slices.DeleteFunc(i.Calls, func(o cf.BOSHCall) bool { return o.GUID == c.GUID })
		s.call(i, cf.BOSHDraining, i.Digest, agent.DrainCall(c.Job, i.changes(), true))
		return false, nil
	}
	return true, nil
}

// finish ends the change of an instance that has reached its desired state.
func (s *step) finish(i *item) {
	i.Chosen = false
	state := "finished"
	if i.Failure != "" {
		state = "failed"
	}
	s.event(s.stage(i), i, state, i.Failure)
}

// fail ends the change of an instance as it is.
func (s *step) fail(i *item, why string) {
	i.Chosen, i.Failure = false, why
	s.event(s.stage(i), i, "failed", why)
}

// watchOf is how long to wait for an instance.
func (s *step) watchOf(i *item) (w struct{ Low, High time.Duration }) {
	w.High = defaultWatch
	for _, g := range s.Plan.Groups {
		if g.Name != i.Group {
			continue
		}
		if i.Canary {
			return g.CanaryWatch
		}
		return g.UpdateWatch
	}
	return w
}
