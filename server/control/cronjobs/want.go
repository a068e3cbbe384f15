package cronjobs

import (
	"slices"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/cron"
	"cupola/store"
	"cupola/store/cf"
)

// Want makes an app have a job with these schedules and no others: it is made, or changed
// where it is not so. A schedule that stays keeps whether it is paused.
func Want(c *control.Session, app *cf.App, req NewJob, expressions []string) error {
	if err := control.Invalid(req.Validate()); err != nil {
		return err
	}
	jobs, err := store.AppJobs.Where(c.Tx, map[string][]string{"app_guids": {app.GUID}, "kinds": {string(cf.KindJob)}, "names": {req.Name}})
	if err != nil {
		return err
	}
	var j *cf.AppJob
	if len(jobs) == 0 {
		j, err = Create(c, app, req)
	} else {
		j = jobs[0]
		err = update(c, app, j, req)
	}
	if err != nil {
		return err
	}
	return schedule(c, app, j, expressions)
}

// update changes a job to what is given.
func update(c *control.Session, app *cf.App, j *cf.AppJob, req NewJob) error {
	was := *j
	j.Command, j.MemoryMB, j.DiskMB, j.Timeout = req.Command, req.MemoryMB.Or(j.MemoryMB), req.DiskMB.Or(j.DiskMB), req.Timeout.Or(j.Timeout)
	if *j == was {
		return nil
	}
	if err := store.AppJobs.Update(c.Tx, j); err != nil {
		return err
	}
	return event(c, audit.AppJobUpdate, app, j, nil)
}

// schedule makes a job have these schedules and no others.
func schedule(c *control.Session, app *cf.App, j *cf.AppJob, expressions []string) error {
	var want []string
	for _, text := range expressions {
		e, err := cron.Parse(text)
		if err != nil {
			return cf.Unprocessable("Job '%s': %s", j.Name, err)
		}
		want = append(want, e.String())
	}
	have, err := store.JobSchedules.By(c.Tx, "job_guids", j.GUID)
	if err != nil {
		return err
	}
	for _, s := range have {
		if i := slices.Index(want, s.Expression); i >= 0 {
			want = slices.Delete(want, i, i+1)
			continue
		}
		if err := deleteSchedule(c, s, j, app); err != nil {
			return err
		}
	}
	for _, expression := range want {
		if _, err := addSchedule(c, j, app, NewSchedule{Expression: expression}); err != nil {
			return err
		}
	}
	return nil
}
