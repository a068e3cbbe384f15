package manifests

import (
	"fmt"

	"cupola/server/control"
	"cupola/server/control/cronjobs"
	"cupola/server/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// applyJobs makes the jobs that the manifest names as it says. Others stay.
func applyJobs(c *control.Session, app *cf.App, m *manifest.App) error {
	for _, j := range m.Jobs {
		want := cronjobs.NewJob{Name: j.Name, Command: j.Command, MemoryMB: given(j.MemoryMB), DiskMB: given(j.DiskMB), Timeout: given(j.Timeout)}
		if err := cronjobs.Want(c, app, want, j.Schedules); err != nil {
			return err
		}
	}
	return nil
}

// addJobs adds the jobs of an app.
func addJobs(c *control.Session, m map[string]any, app *cf.App) error {
	jobs, err := store.AppJobs.Where(c.Tx, map[string][]string{"app_guids": {app.GUID}, "kinds": {string(cf.KindJob)}})
	if err != nil || len(jobs) == 0 {
		return err
	}
	schedules, err := store.JobSchedules.By(c.Tx, "job_guids", control.GUIDs(jobs, func(j *cf.AppJob) string { return j.GUID })...)
	if err != nil {
		return err
	}
	of := map[string][]string{}
	for _, s := range schedules {
		of[s.JobGUID] = append(of[s.JobGUID], s.Expression)
	}
	var list []any
	for _, j := range jobs {
		list = append(list, viewJob(j, of[j.GUID]))
	}
	m["jobs"] = list
	return nil
}

func viewJob(j *cf.AppJob, schedules []string) map[string]any {
	e := map[string]any{"name": j.Name, "command": j.Command, "timeout": j.Timeout}
	if j.MemoryMB > 0 {
		e["memory"] = fmt.Sprintf("%dM", j.MemoryMB)
	}
	if j.DiskMB > 0 {
		e["disk_quota"] = fmt.Sprintf("%dM", j.DiskMB)
	}
	switch len(schedules) {
	case 0:
	case 1:
		e["schedule"] = schedules[0]
	default:
		e["schedule"] = anyList(schedules)
	}
	return e
}
