package director

import (
	"fmt"
	"strings"
	"time"

	"cupola/server/bosh/agent"
	"cupola/server/bosh/manifest"
	"cupola/store/cf"
)

// callAll calls post-deploy on all instances that have it.
func (s *step) callAll() {
	for _, i := range s.all {
		if i.Phase != cf.BOSHRunning || i.Spec == nil {
			continue
		}
		s.forget(i)
		for _, job := range i.Spec.With(agent.PostDeploy) {
			s.call(i, cf.BOSHPostDeploy, i.Digest, agent.Call{Job: job, Script: agent.PostDeploy})
		}
	}
}

// postDeploy goes on when all post-deploy scripts have ended.
func (s *step) postDeploy() {
	var faulty []string
	for _, i := range s.all {
		if calling(i) {
			return
		}
		if why := faults(i.Calls); why != "" && i.Calls[0].Phase == cf.BOSHPostDeploy {
			faulty = append(faulty, fmt.Sprintf("%s/%d: %s", i.Group, i.Index, why))
		}
	}
	if len(faulty) > 0 {
		s.end(cf.BOSHError, strings.Join(faulty, "\n"))
		return
	}
	if Kind(s.Task.Kind) != Deploy {
		s.end(cf.BOSHDone, s.Plan.Result)
		return
	}
	s.enterStage(errands)
}

// Kubernetes' rules for a job that failed: it is tried six times more, later
// each time.
const (
	errandRetries = 6
	errandBackOff = 10 * time.Second
)

// errands runs what is to run once: the errand that was asked for, or the
// auto-errands that are not what they were when they last did.
func (s *step) errands() {
	open := false
	for _, i := range s.all {
		if !s.due(i) {
			continue
		}
		if !i.Chosen && i.instance.Next == nil && i.Fault != "" {
			i.TaskGUID = s.Task.GUID
			s.fail(i, i.Fault)
			continue
		}
		if !i.Chosen {
			s.forget(i)
			i.TaskGUID, i.Chosen, i.Failure = s.Task.GUID, true, ""
			s.event("Running errand", subject(i), "started", "")
			s.callErrand(i)
		}
		open = s.errand(i) || open
	}
	switch {
	case open:
	case s.failed():
		s.end(cf.BOSHError, s.failure())
	default:
		s.end(cf.BOSHDone, s.Plan.Result)
	}
}

// due reports whether an errand's instance has to run, or runs.
func (s *step) due(i *item) bool {
	if i.TaskGUID == s.Task.GUID && !i.Chosen {
		return false // it has run
	}
	if s.Plan.Errand != "" {
		return i.Group == s.Plan.Errand && (i.Chosen || !s.Plan.WhenChanged || i.Digest != i.BOSHInstance.Next)
	}
	return i.Lifecycle == string(manifest.AutoErrand) && i.Goal == cf.BOSHStarted && (i.Chosen || i.Digest != i.BOSHInstance.Next)
}

func (s *step) callErrand(i *item) {
	if i.instance.Next == nil {
		return
	}
	for _, c := range i.instance.Next.ErrandCalls() {
		s.call(i, cf.BOSHErrand, i.BOSHInstance.Next, c)
	}
}

// errand reports whether an errand still runs, or will again.
func (s *step) errand(i *item) (open bool) {
	if calling(i) {
		return true
	}
	per := 1
	if i.instance.Next != nil {
		per = max(len(i.instance.Next.ErrandCalls()), 1)
	}
	last := i.Calls[max(len(i.Calls)-per, 0):]
	why := faults(last)
	tries := len(i.Calls) / per
	if why == "" {
		s.ran(i)
		i.Digest = i.BOSHInstance.Next
		i.Chosen = false
		s.event("Running errand", subject(i), "finished", "")
		return false
	}
	if s.Plan.Errand != "" || tries > errandRetries {
		s.ran(i)
		i.Chosen, i.Failure = false, fmt.Sprintf("Errand '%s' failed. %s", i.Group, why)
		s.event("Running errand", subject(i), "failed", why)
		return false
	}
	at := endOf(last).Add(errandBackOff << (tries - 1))
	if s.Now.Before(at) {
		s.wakeAt(at)
		return true
	}
	s.callErrand(i)
	return true
}

// ran deletes the ephemeral disks of a finished errand, as BOSH deletes its
// VM.
func (s *step) ran(i *item) {
	if !s.Plan.KeepAlive {
		s.discard(i)
	}
}

// discard deletes the ephemeral disks of a stopped instance, before that is
// recorded.
func (s *step) discard(i *item) {
	s.out.Discard = append(s.out.Discard, agent.Instance{GUID: i.GUID}.Ephemeral()...)
}

func endOf(calls []cf.BOSHCall) (at time.Time) {
	for _, c := range calls {
		if c.EndedAt.After(at) {
			at = c.EndedAt
		}
	}
	return at
}
