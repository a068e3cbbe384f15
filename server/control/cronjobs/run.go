package cronjobs

import (
	"fmt"
	"time"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// keptExecutions is how long a job's history is.
const keptExecutions = 200

// Execute runs a job now, unless a run of it goes on.
func Execute(c *control.Session, kind cf.AppJobKind, guid string) (*cf.JobExecution, error) {
	j, app, err := Find(c, kind, guid)
	if err != nil {
		return nil, err
	}
	running, err := runningOf(c, j)
	if err != nil {
		return nil, err
	}
	if running != nil && kind == cf.KindCall {
		return nil, cf.Unprocessable("Call '%s' is running since %s: wait for it.", j.Name, stamp(running.CreatedAt))
	}
	if running != nil {
		return nil, cf.Unprocessable("Job '%s' is running since %s, as the task %s: wait for it, or cancel the task.", j.Name, stamp(running.CreatedAt), running.TaskName)
	}
	return start(c, app, j, &cf.JobExecution{JobGUID: j.GUID})
}

// runningOf is the run of a job that goes on; nil for none.
func runningOf(c *control.Session, j *cf.AppJob) (*cf.JobExecution, error) {
	all, err := store.JobExecutions.Where(c.Tx, map[string][]string{"job_guids": {j.GUID}, "states": {string(cf.ExecutionRunning)}})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// asTask says what task a run is, if any.
func asTask(x *cf.JobExecution) string {
	if x.TaskName == "" {
		return ""
	}
	return ", as the task " + x.TaskName
}

// note writes what happens to a job to the app's log.
func note(c *control.Session, app *cf.App, j *cf.AppJob, what string) {
	c.Note(app, "%s %s %s", title(j.Kind), j.Name, what)
}

// start starts a run. That of a call is only recorded: the loop makes its request.
func start(c *control.Session, app *cf.App, j *cf.AppJob, x *cf.JobExecution) (*cf.JobExecution, error) {
	x.State = cf.ExecutionRunning
	if j.Kind == cf.KindCall {
		note(c, app, j, "started")
		return x, record(c, j, x)
	}
	if err := c.Feature("task_creation"); err != nil {
		return nil, err
	}
	return x, startTask(c, app, j, x)
}

// startTask runs a job as a task. The task's name, by which its log is found, is the job's
// and a random part.
func startTask(c *control.Session, app *cf.App, j *cf.AppJob, x *cf.JobExecution) error {
	req := apps.NewTask{Name: change.To(j.Name + "-" + control.NewGUID()[:8]), Command: change.To(j.Command)}
	if j.MemoryMB > 0 {
		req.MemoryMB = change.To(j.MemoryMB)
	}
	if j.DiskMB > 0 {
		req.DiskMB = change.To(j.DiskMB)
	}
	t, err := apps.RunTask(c, app, req)
	if err != nil {
		return err
	}
	x.StartedAt, x.TaskGUID, x.TaskName = c.Tx.Now, t.GUID, t.Name
	c.Note(app, "Started job %s as task %s", j.Name, t.Name)
	return record(c, j, x)
}

// record adds a run to a job's history, and forgets the oldest.
func record(c *control.Session, j *cf.AppJob, x *cf.JobExecution) error {
	if err := store.JobExecutions.Insert(c.Tx, x); err != nil {
		return err
	}
	j.State = string(x.State)
	if err := store.AppJobs.Update(c.Tx, j); err != nil {
		return err
	}
	return store.JobExecutions.Forget(c.Tx, j.GUID, keptExecutions)
}

// skip records that a run did not start, and why.
func skip(c *control.Session, app *cf.App, j *cf.AppJob, x *cf.JobExecution, why string) error {
	return refuse(c, app, j, x, cf.ExecutionSkipped, why)
}

// refuse records that a run was skipped or has failed before it began.
func refuse(c *control.Session, app *cf.App, j *cf.AppJob, x *cf.JobExecution, state cf.ExecutionState, why string) error {
	x.State, x.Message, x.EndedAt = state, why, c.Tx.Now
	kind, verb := audit.AppJobSkip, "skipped"
	if state == cf.ExecutionFailed {
		kind, verb = audit.AppJobFail, "failed"
	}
	note(c, app, j, verb+": "+why)
	if err := record(c, j, x); err != nil {
		return err
	}
	return event(c, kind, app, j, audit.Data{"execution_guid": x.GUID, "reason": why})
}

// recordTaskEnd notes how a run has ended, if it has, and cancels the task of one that takes too
// long.
func recordTaskEnd(c *control.Session, app *cf.App, j *cf.AppJob, x *cf.JobExecution) error {
	t, err := store.Tasks.Get(c.Tx, x.TaskGUID)
	switch {
	case store.IsNotFound(err):
		return ended(c, app, j, x, cf.ExecutionFailed, "its task was deleted")
	case err != nil:
		return err
	case t.State == cf.TaskSucceeded:
		return ended(c, app, j, x, cf.ExecutionSucceeded, x.Message)
	case t.State == cf.TaskFailed && x.Message == "":
		return ended(c, app, j, x, cf.ExecutionFailed, t.FailureReason)
	case t.State == cf.TaskFailed:
		return ended(c, app, j, x, cf.ExecutionFailed, x.Message+": "+t.FailureReason)
	case t.State == cf.TaskCanceling || c.Tx.Now.Before(deadline(j, x)):
		return nil
	}
	x.Message = fmt.Sprintf("canceled after its timeout of %s", time.Duration(j.Timeout)*time.Second)
	if err := store.JobExecutions.Update(c.Tx, x); err != nil {
		return err
	}
	note(c, app, j, x.Message)
	return apps.CancelTask(c, app, t)
}

// deadline is when a run has taken too long.
func deadline(j *cf.AppJob, x *cf.JobExecution) time.Time {
	return x.StartedAt.Add(time.Duration(j.Timeout) * time.Second)
}

// ended notes how a run has ended.
func ended(c *control.Session, app *cf.App, j *cf.AppJob, x *cf.JobExecution, state cf.ExecutionState, message string) error {
	x.State, x.Message, x.EndedAt = state, message, c.Tx.Now
	if err := store.JobExecutions.Update(c.Tx, x); err != nil {
		return err
	}
	j.State = string(state)
	if err := store.AppJobs.Update(c.Tx, j); err != nil {
		return err
	}
	if state == cf.ExecutionSucceeded {
		if j.Kind == cf.KindCall {
			note(c, app, j, "succeeded: "+message)
		}
		return nil
	}
	note(c, app, j, "failed"+asTask(x)+": "+message)
	return event(c, audit.AppJobFail, app, j, audit.Data{"execution_guid": x.GUID, "task_guid": x.TaskGUID, "reason": message})
}

// stamp is a time as messages show it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
