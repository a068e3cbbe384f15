package director

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
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

// ErrandResult is how a script or process of an errand has ended.
type ErrandResult struct {
	Instance string `json:"instance"` // group/index
	GUID     string `json:"guid"`     // of the instance
	Job      string `json:"job"`
	Process  string `json:"process,omitempty"`
	// Call is the value of the tag bosh_call of its log lines.
	Call string `json:"call"`
	// ExitCode is -1 if nothing ran, or a signal ended it; Reason says why it failed.
	ExitCode int    `json:"exit_code"`
	Reason   string `json:"reason,omitempty"`
}

// ErrandResults are those of a task.
func ErrandResults(t *cf.BOSHTask) ([]ErrandResult, error) {
	if len(t.Plan) == 0 {
		return nil, nil
	}
	p, err := decodePlan(t.Plan)
	return p.Ran, err
}

// Exited reports whether a task failed by nothing but the exit codes of the errands that it ran.
func Exited(t *cf.BOSHTask) (bool, error) {
	if t.State != cf.BOSHError || Kind(t.Kind) != RunErrand || len(t.Plan) == 0 {
		return false, nil
	}
	p, err := decodePlan(t.Plan)
	return p.Exited, err
}

func resultOf(i *item, c cf.BOSHCall) ErrandResult {
	r := ErrandResult{Instance: fmt.Sprintf("%s/%d", i.Group, i.Index), GUID: i.GUID, Job: c.Job, Process: c.Process, Call: c.GUID, Reason: c.Reason}
	if c.State == cf.BOSHFailed {
		r.ExitCode = -1
		if _, code, ok := strings.Cut(c.Reason, "Exited with status "); ok {
			digits := code[:len(code)-len(strings.TrimLeft(code, "0123456789"))]
			if n, err := strconv.Atoi(digits); err == nil {
				r.ExitCode = n
			}
		}
	}
	return r
}

// errands runs what runs once: the errand that was asked for, or the
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
			s.event("Running errand", i, "started", "")
			s.callErrand(i)
		}
		open = s.errand(i) || open
	}
	switch {
	case open:
	case s.failed():
		s.endFailed()
	case s.Plan.runsErrand() && !slices.ContainsFunc(s.all, s.named):
		s.end(cf.BOSHError, fmt.Sprintf("Errand '%s' did not run: no instance that has it is running", cmp.Or(s.Plan.ErrandJob, s.Plan.Errand)))
	default:
		s.end(cf.BOSHDone, s.Plan.Result)
	}
}

// endFailed ends a task some of whose errands failed.
func (s *step) endFailed() {
	s.Plan.Exited = s.exited()
	if err := s.savePlan(); err != nil {
		s.end(cf.BOSHError, err.Error())
		return
	}
	s.end(cf.BOSHError, s.failure())
}

// exited reports whether each failure of the task is that of an errand that ended with an exit code.
func (s *step) exited() bool {
	failures := len(s.Plan.Faults)
	for _, i := range s.all {
		if i.TaskGUID == s.Task.GUID && i.Failure != "" {
			failures++
		}
	}
	failed := map[string]bool{}
	for _, r := range s.Plan.Ran {
		if r.ExitCode < 0 {
			return false
		}
		if r.ExitCode > 0 {
			failed[r.GUID] = true
		}
	}
	return len(failed) == failures
}

// runsErrand reports whether the task runs a requested errand.
func (p taskPlan) runsErrand() bool { return p.Errand != "" || p.ErrandJob != "" }

// named reports whether the task's errand runs on an instance: that of a service must be
// running.
func (s *step) named(i *item) bool {
	if s.Plan.Group != "" && i.Group != s.Plan.Group || s.Plan.Index != nil && i.Index != *s.Plan.Index {
		return false
	}
	if s.Plan.Errand != "" {
		return i.Group == s.Plan.Errand
	}
	return len(s.errandCalls(i)) > 0 && (!i.service() || i.Phase == cf.BOSHRunning && i.Goal == cf.BOSHStarted)
}

// due reports whether an errand's instance has to run, or runs.
func (s *step) due(i *item) bool {
	if i.TaskGUID == s.Task.GUID && !i.Chosen {
		return false // it has run
	}
	if s.Plan.runsErrand() {
		return s.named(i) && (i.Chosen || !s.Plan.WhenChanged || s.changed(i))
	}
	return i.Lifecycle == string(manifest.AutoErrand) && i.Goal == cf.BOSHStarted && (i.Chosen || i.Digest != i.BOSHInstance.Next)
}

// changed reports whether the errand has not succeeded on an instance as that is now.
func (s *step) changed(i *item) bool {
	if !i.service() && i.Digest == i.BOSHInstance.Next {
		return false
	}
	return slices.ContainsFunc(s.errandCalls(i), func(want agent.Call) bool {
		return !slices.ContainsFunc(i.Calls, func(c cf.BOSHCall) bool {
			return c.Phase == cf.BOSHErrand && c.State == cf.BOSHSucceeded && c.Digest == i.errandDigest() && c.Job == want.Job && c.Process == want.Process
		})
	})
}

// errandCalls are what the errand runs on an instance: all jobs of an errand's, or one
// job; of services, only the job's script.
func (s *step) errandCalls(i *item) []agent.Call {
	if i.service() {
		if i.Spec == nil || !slices.Contains(i.Spec.With(agent.Errand), s.Plan.ErrandJob) {
			return nil
		}
		return []agent.Call{{Job: s.Plan.ErrandJob, Script: agent.Errand}}
	}
	if i.instance.Next == nil {
		return nil
	}
	return slices.DeleteFunc(i.instance.Next.ErrandCalls(), func(c agent.Call) bool { return s.Plan.ErrandJob != "" && c.Job != s.Plan.ErrandJob })
}

// errandDigest names the spec that an errand runs from.
func (i *item) errandDigest() string {
	if i.service() {
		return i.Digest
	}
	return i.BOSHInstance.Next
}

func (s *step) callErrand(i *item) {
	for _, c := range s.errandCalls(i) {
		s.call(i, cf.BOSHErrand, i.errandDigest(), c)
	}
}

// errand reports whether an errand still runs, or will again.
func (s *step) errand(i *item) (open bool) {
	if calling(i) {
		return true
	}
	per := max(len(s.errandCalls(i)), 1)
	last := i.Calls[max(len(i.Calls)-per, 0):]
	why := faults(last)
	tries := len(i.Calls) / per
	if why == "" || s.Plan.runsErrand() || tries > errandRetries {
		s.ran(i, last, why)
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

// ran ends the run of an errand on an instance. The ephemeral disks of an errand's
// instance are deleted, as BOSH deletes its VM; those of a service stay.
func (s *step) ran(i *item, calls []cf.BOSHCall, why string) {
	i.Chosen = false
	for _, c := range calls {
		s.Plan.Ran = append(s.Plan.Ran, resultOf(i, c))
	}
	if why != "" {
		s.errandFailed(i, why)
	} else {
		if !i.service() && s.Plan.ErrandJob == "" {
			i.Digest = i.BOSHInstance.Next
		}
		s.event("Running errand", i, "finished", "")
	}
	if !i.service() && !s.Plan.KeepAlive {
		s.discard(i)
	}
	if err := s.savePlan(); err != nil {
		s.Plan.Faults = append(s.Plan.Faults, err.Error())
	}
}

// errandFailed notes why an errand failed. A service that it ran on is as well as before.
func (s *step) errandFailed(i *item, why string) {
	text := fmt.Sprintf("Errand '%s' failed. %s", cmp.Or(s.Plan.ErrandJob, i.Group), why)
	if i.service() {
		s.Plan.Faults = append(s.Plan.Faults, text)
	} else {
		i.Failure = text
	}
	s.event("Running errand", i, "failed", why)
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
