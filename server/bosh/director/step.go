package director

import (
	"fmt"
	"slices"
	"strings"

	"cupola/server/bosh/manifest"
	"cupola/store/cf"
)

// step returns the next changes. It depends only on w.
func (w world) step() changes {
	s := &step{world: w}
	s.Instances = slices.Clone(w.Instances)
	for n := range s.Instances {
		s.all = append(s.all, &item{instance: s.Instances[n], was: s.Instances[n].BOSHInstance})
	}
	s.work()
	s.undoLacking()
	s.noteSmall()
	for _, i := range s.all {
		if !i.gone && i.BOSHInstance != i.was {
			s.out.Instances = append(s.out.Instances, i.BOSHInstance)
		}
	}
	return s.out
}

// undoLacking keeps instances down that should start, or run an errand, but
// have no disks.
func (s *step) undoLacking() {
	for _, i := range s.all {
		err := s.Disks.lacking[i.GUID]
		if err == nil || i.gone {
			continue
		}
		s.out.Calls = slices.DeleteFunc(s.out.Calls, func(c cf.BOSHCall) bool { return c.InstanceGUID == i.GUID })
		s.out.Orphans = slices.DeleteFunc(s.out.Orphans, func(guid string) bool { return guid == i.was.DiskGUID })
		if comesUp(&i.BOSHInstance) || !i.service() {
			i.Phase, i.Digest, i.Renewed, i.DiskGUID = cf.BOSHStopped, i.was.Digest, i.was.Renewed, i.was.DiskGUID
		}
		i.Chosen, i.Failure, i.TaskGUID = false, err.Error(), s.Task.GUID
		s.event(s.stage(i), i, "failed", err.Error())
	}
}

// noteSmall notes that an instance comes up with a disk that could not grow. That is
// tried again after its pre-start scripts, and by the next task; the instance
// runs, but its change has failed.
func (s *step) noteSmall() {
	for _, i := range s.all {
		if i.gone || !i.Chosen || i.Phase == i.was.Phase || !comesUp(&i.BOSHInstance) {
			continue
		}
		i.Failure = ""
		if err := s.Disks.small[i.GUID]; err != nil {
			i.Failure = fmt.Sprintf("'%s/%d (%s)' runs with its old disk: %s", i.Group, i.Index, i.GUID, err)
		}
	}
}

type step struct {
	world
	all []*item
	out changes
}

// item is an instance as this step changes it.
type item struct {
	instance
	was  cf.BOSHInstance
	gone bool
}

// work moves what is chosen on, chooses more, and ends the task when there is
// nothing more to do.
func (s *step) work() {
	for _, i := range s.all {
		if i.Chosen && !s.runs(i) {
			s.move(i)
		}
	}
	switch s.Plan.Stage {
	case updating:
		s.update()
	case postDeploy:
		s.postDeploy()
	case errands:
		s.errands()
	}
}

// service reports whether an instance has processes to bring up.
func (i *item) service() bool { return i.Lifecycle == string(manifest.Service) }

// goal is where an instance has to get: an errand's is at rest, but for its runs.
func (i *item) goal() cf.BOSHGoal {
	if i.Goal == cf.BOSHStarted && !i.service() {
		return cf.BOSHHalted
	}
	return i.Goal
}

// runs reports whether an instance was chosen to run an errand.
func (s *step) runs(i *item) bool { return s.Plan.Stage == errands && i.Goal != cf.BOSHGone }

// update chooses instances group by group.
func (s *step) update() {
	if s.Plan.runsErrand() {
		s.enterStage(errands)
		return
	}
	for n, g := range s.Plan.Groups {
		if s.failed() {
			break
		}
		if g.Serial && slices.ContainsFunc(s.Plan.Groups[:n], s.changing) {
			break
		}
		s.group(g)
		if g.Serial && s.changing(g) {
			break
		}
	}
	switch {
	case slices.ContainsFunc(s.all, func(i *item) bool { return i.Chosen }):
	case s.failed():
		s.end(cf.BOSHError, s.failure())
	case slices.ContainsFunc(s.Plan.Groups, s.changing):
	case Kind(s.Task.Kind) == Deploy, s.touched():
		s.enterStage(postDeploy)
	default:
		s.end(cf.BOSHDone, s.Plan.Result)
	}
}

// touched reports whether a start, stop, restart or recreate has changed anything:
// to BOSH's director, that is a deploy too.
func (s *step) touched() bool {
	return Kind(s.Task.Kind) != Delete && slices.ContainsFunc(s.all, func(i *item) bool { return i.TaskGUID == s.Task.GUID })
}

// pending returns the instances of a group that differ from their desired
// state and are not being changed: first those to delete, highest index first.
func (s *step) pending(g group) (gone, others []*item) {
	for _, i := range s.all {
		switch {
		case i.Group != g.Name || i.gone || i.Chosen || i.TaskGUID == s.Task.GUID && i.Failure != "":
		case i.Goal == cf.BOSHGone:
			gone = append(gone, i)
		case i.service() && !i.UpToDate() || !i.service() && i.Phase != cf.BOSHStopped || s.newDisk(i) != "":
			others = append(others, i)
		}
	}
	slices.Reverse(gone)
	return gone, others
}

func (s *step) changing(g group) bool {
	gone, others := s.pending(g)
	return len(gone)+len(others) > 0 || s.inFlight(g) > 0
}

func (s *step) inFlight(g group) (n int) {
	for _, i := range s.all {
		if i.Group == g.Name && i.Chosen && !i.gone {
			n++
		}
	}
	return n
}

// group chooses more instances of a group, if more may be under way: those to go,
// then the canaries, no more at once than others as BOSH has it, then the others,
// one AZ after the other.
func (s *step) group(g group) {
	gone, others := s.pending(g)
	room := g.MaxInFlight - s.inFlight(g)
	for _, i := range gone {
		if room > 0 {
			s.choose(i, false)
			room--
		}
	}
	if len(gone) > 0 || len(others) == 0 {
		return
	}
	canaries, waits := s.canaries(g)
	if canaries > 0 {
		for _, i := range others[:max(min(canaries, len(others), room), 0)] {
			s.choose(i, true)
		}
		return
	}
	if waits {
		return
	}
	az := others[0].AZ
	if slices.ContainsFunc(s.all, func(i *item) bool { return i.Group == g.Name && i.Chosen && i.AZ != az }) {
		return
	}
	for _, i := range others {
		if i.AZ == az && room > 0 {
			s.choose(i, false)
			room--
		}
	}
}

// canaries returns how many canaries to add, and whether to wait for the
// current ones.
func (s *step) canaries(g group) (missing int, waits bool) {
	n := 0
	for _, i := range s.all {
		if i.Group == g.Name && i.TaskGUID == s.Task.GUID && i.Canary {
			n++
			waits = waits || i.Chosen
		}
	}
	return g.Canaries - n, waits
}

// choose begins to change an instance. One that failed before starts from
// nothing.
func (s *step) choose(i *item, canary bool) {
	failed := i.Failure != ""
	i.TaskGUID, i.Chosen, i.Canary, i.Failure = s.Task.GUID, true, canary, ""
	s.event(s.stage(i), i, "started", "")
	if failed {
		s.recover(i)
	}
	s.move(i)
}

// recover stops an instance that failed to start, and retries a failed stop.
func (s *step) recover(i *item) {
	switch i.Phase {
	case cf.BOSHPreStop, cf.BOSHDraining, cf.BOSHPostStop:
		s.enter(i, i.Phase)
	default:
		i.Renew++
	}
}

// stage is what BOSH calls what is done to an instance.
func (s *step) stage(i *item) string {
	switch {
	case i.Goal == cf.BOSHGone:
		return "Deleting unneeded instances " + i.Group
	case i.goal() == cf.BOSHHalted:
		return "Stopping instances"
	case Kind(s.Task.Kind) == Start, Kind(s.Task.Kind) == Restart:
		return "Starting instances"
	}
	return "Updating instance " + i.Group
}

func subject(i *item) string {
	text := fmt.Sprintf("%s/%d (%s)", i.Group, i.Index, i.GUID)
	if i.Canary {
		text += " (canary)"
	}
	return text
}

// failed reports whether the task has failed; then nothing more is begun.
func (s *step) failed() bool { return s.failure() != "" }

func (s *step) failure() string {
	var all []string
	for _, i := range s.all {
		if i.TaskGUID == s.Task.GUID && i.Failure != "" {
			all = append(all, i.Failure)
		}
	}
	return strings.Join(append(all, s.Plan.Faults...), "\n")
}

func (s *step) enterStage(stage stage) {
	s.Plan.Stage = stage
	if err := s.savePlan(); err != nil {
		s.end(cf.BOSHError, err.Error())
		return
	}
	switch stage {
	case postDeploy:
		s.callAll()
		s.postDeploy()
	case errands:
		s.errands()
	}
}

// savePlan writes the plan as it is now.
func (s *step) savePlan() error {
	text, err := s.Plan.encode()
	if err != nil {
		return err
	}
	t := s.Task
	t.Plan = text
	s.out.Task = &t
	return nil
}

// end ends the task. Only now are the ephemeral disks deleted of instances that were
// stopped before, or by a hard stop.
func (s *step) end(state cf.BOSHTaskState, result string) {
	for _, i := range s.all {
		if i.Phase == cf.BOSHStopped && i.goal() == cf.BOSHHalted && slices.Contains(s.Plan.Discard, i.GUID) {
			s.discard(i)
		}
	}
	t := s.Task
	if s.out.Task != nil {
		t = *s.out.Task
	}
	t.State, t.Result, t.EndedAt = state, result, s.Now
	s.out.Task = &t
}
