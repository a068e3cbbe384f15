package cronjobs

import (
	"fmt"
	"time"

	"cupola/server/control"
	"cupola/server/cron"
	"cupola/store"
	"cupola/store/cf"
)

// late is how long after it was due a run may start without a word.
const late = time.Minute

// maxCounted bounds how many runs that were missed are counted.
const maxCounted = 1000

// missed are the runs of a schedule that were due before the last one.
type missed struct {
	count       int
	more        bool // there were more than are counted
	first, last time.Time
}

// due reports which run of a schedule is due, which were missed, and when the next one is.
func due(e *cron.Expression, s *cf.JobSchedule, now time.Time) (run time.Time, m missed, next time.Time) {
	from := s.NextAt.Add(-time.Nanosecond)
	times, more := e.Between(from, now, maxCounted)
	next = e.Next(now)
	if len(times) == 0 {
		return run, m, next
	}
	run = times[len(times)-1]
	if more {
		run = e.Last(from, now)
	}
	if n := len(times) - 1; n > 0 {
		m = missed{count: n, more: more, first: times[0], last: times[n-1]}
	}
	return run, m, next
}

func (m missed) String() string {
	count := fmt.Sprint(m.count)
	if m.more {
		count = "more than " + count
	}
	if m.count == 1 {
		return fmt.Sprintf("1 run was missed, at %s: cupola was not running", stamp(m.first))
	}
	return fmt.Sprintf("%s runs were missed, the first at %s: cupola was not running", count, stamp(m.first))
}

// begin starts the run of a schedule that is due, or skips it, and sets when the next one is.
// A run that is refused is an error, of which nothing is left to be written: fail records it.
func begin(c *control.Session, s *cf.JobSchedule) error {
	j, app, err := ownersOf(c, s)
	if err != nil {
		return control.IfFound(err)
	}
	x, err := advance(c, s, j, app)
	if err != nil || x == nil {
		return err
	}
	why, err := obstacle(c, app, j)
	if err != nil {
		return err
	}
	if why != "" {
		return skip(c, app, j, x, why)
	}
	_, err = start(c, app, j, x)
	return err
}

// fail records that the run that is due was refused.
func fail(c *control.Session, s *cf.JobSchedule, why *cf.Error) error {
	j, app, err := ownersOf(c, s)
	if err != nil {
		return control.IfFound(err)
	}
	x, err := advance(c, s, j, app)
	if err != nil || x == nil {
		return err
	}
	return refuse(c, app, j, x, cf.ExecutionFailed, why.Detail)
}

// ownersOf are the job of a schedule and its app.
func ownersOf(c *control.Session, s *cf.JobSchedule) (*cf.AppJob, *cf.App, error) {
	j, err := store.AppJobs.Get(c.Tx, s.JobGUID)
	if err != nil {
		return nil, nil, err
	}
	app, err := store.Apps.Get(c.Tx, j.AppGUID)
	return j, app, err
}

// advance moves a schedule on, and returns the run that is due, nil for none. Runs that were
// missed are said.
func advance(c *control.Session, s *cf.JobSchedule, j *cf.AppJob, app *cf.App) (*cf.JobExecution, error) {
	e, err := cron.Parse(s.Expression)
	if err != nil {
		return nil, err // a database that another version wrote
	}
	run, m, next := due(e, s, c.Tx.Now)
	s.NextAt = next
	if err := store.JobSchedules.Update(c.Tx, s); err != nil || run.IsZero() {
		return nil, err
	}
	if m.count > 0 {
		if err := skip(c, app, j, &cf.JobExecution{JobGUID: j.GUID, ScheduleGUID: s.GUID, ScheduledAt: m.last}, m.String()); err != nil {
			return nil, err
		}
	}
	x := &cf.JobExecution{JobGUID: j.GUID, ScheduleGUID: s.GUID, ScheduledAt: run}
	if by := c.Tx.Now.Sub(run); by > late {
		x.Message = fmt.Sprintf("started %s late: cupola was not running", by.Round(time.Second))
		note(c, app, j, x.Message)
	}
	return x, nil
}

// obstacle is why a job is not to be run now, "" for nothing.
func obstacle(c *control.Session, app *cf.App, j *cf.AppJob) (string, error) {
	space, err := store.Spaces.Get(c.Tx, app.SpaceGUID)
	if err != nil {
		return "", err
	}
	org, err := store.Orgs.Get(c.Tx, space.OrgGUID)
	if err != nil {
		return "", err
	}
	if org.Suspended {
		return "the organization is suspended", nil
	}
	running, err := runningOf(c, j)
	if err != nil || running == nil {
		return "", err
	}
	return fmt.Sprintf("the run of %s still goes on%s", stamp(running.CreatedAt), asTask(running)), nil
}
