package api

import (
	"strings"
	"time"

	"cupola/server/control"
	"cupola/server/control/cronjobs"
	"cupola/store"
	"cupola/store/cf"
)

// The routes of jobs of apps are those of Cloud Foundry's scheduler, whose CLI plugin finds them
// at the host "scheduler".

// viewAppJob shows a job. What it runs is shown to who may see what tasks run.
func viewAppJob(c *call, j *cf.AppJob) doc {
	d := with(resource(j.Resource), doc{"name": j.Name, "memory_in_mb": j.MemoryMB, "disk_in_mb": j.DiskMB,
		"timeout_in_seconds": j.Timeout, "state": j.State, "app_guid": j.AppGUID})
	app, err := recall(c, store.Apps, j.AppGUID)
	if err != nil {
		return d
	}
	d["space_guid"] = app.SpaceGUID
	place, err := c.PlaceOf(app)
	if err == nil && c.Actor.May(commandReader, place) {
		d["command"] = j.Command
	}
	return d
}

func viewJobSchedule(_ *call, s *cf.JobSchedule) doc {
	d := with(resource(s.Resource), doc{"job_guid": s.JobGUID, "enabled": s.Enabled, "expression": s.Expression,
		"expression_type": "cron_expression", "time_zone": cronjobs.TimeZone(s), "next_time": orNever(s.NextAt)})
	if !s.Enabled {
		d["next_time"] = nil
	}
	return d
}

func viewJobExecution(_ *call, x *cf.JobExecution) doc {
	return with(resource(x.Resource), doc{"job_guid": x.JobGUID, "schedule_guid": x.ScheduleGUID, "task_guid": x.TaskGUID, "task_name": x.TaskName,
		"state": x.State, "message": x.Message, "scheduled_time": orNever(x.ScheduledAt), "execution_start_time": orNever(x.StartedAt), "execution_end_time": orNever(x.EndedAt)})
}

// orNever is a time, or null for none.
func orNever(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

// What a page of these lists has: the scheduler's plugin asks for no other.
const (
	defaultJobs = 1000
	maxJobs     = 5000
)

// listScheduler lists rows that the actor sees. Parameters are filters by their names here.
func listScheduler[T any](c *call, t *store.Table[T], v view[T], q store.Query, parameters map[string]string) (*response, error) {
	asked := c.Request.URL.Query()
	q.Visible, q.Page, q.PerPage = c.Scope, 1, defaultJobs
	if q.Where == nil {
		q.Where = map[string][]string{}
	}
	for name, values := range asked {
		value, err := values[len(values)-1], error(nil)
		switch filter := parameters[name]; {
		case name == "page":
			q.Page, err = positive("Page", value, 1<<31)
		case name == "per_page":
			q.PerPage, err = positive("Per page", value, maxJobs)
		case filter == "":
			err = badQuery("Unknown query parameter(s): '%s'", name)
		default:
			q.Where[filter] = strings.Split(value, ",")
		}
		if err != nil {
			return nil, err
		}
	}
	found, total, err := t.List(c.Tx, q)
	if err != nil {
		return nil, err
	}
	return ok(page(c, listQuery{Query: q}, found, total, v))
}

func listAppJobs(c *call) (*response, error) {
	return listScheduler(c, store.AppJobs, viewAppJob, store.Query{Order: "name"}, map[string]string{"space_guid": "space_guids", "app_guid": "app_guids", "name": "names"})
}

func createAppJob(c *call) (*response, error) {
	var req cronjobs.NewJob
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	app, err := c.App(c.Request.URL.Query().Get("app_guid"))
	if err != nil {
		return nil, control.Unprocessable(err, "The query parameter app_guid must be the GUID of an app that you have access to.")
	}
	j, err := cronjobs.Create(c.Session, app, req)
	if err != nil {
		return nil, err
	}
	return created(viewAppJob(c, j))
}

func findAppJob(c *call) (*cf.AppJob, error) {
	j, _, err := cronjobs.Find(c.Session, c.guid())
	return j, err
}

func deleteAppJob(c *call) (*response, error) {
	if err := cronjobs.Delete(c.Session, c.guid()); err != nil {
		return nil, err
	}
	return noContent()
}

func executeAppJob(c *call) (*response, error) {
	x, err := cronjobs.Execute(c.Session, c.guid())
	if err != nil {
		return nil, err
	}
	return created(viewJobExecution(c, x))
}

func listJobSchedules(c *call) (*response, error) {
	j, err := findAppJob(c)
	if err != nil {
		return nil, err
	}
	return listScheduler(c, store.JobSchedules.Table, viewJobSchedule, ofJob(j), nil)
}

// ofJob asks for what is of a job.
func ofJob(j *cf.AppJob) store.Query {
	return store.Query{Where: map[string][]string{"job_guids": {j.GUID}}}
}

func createJobSchedule(c *call) (*response, error) {
	var req cronjobs.NewSchedule
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	s, err := cronjobs.AddSchedule(c.Session, c.guid(), req)
	if err != nil {
		return nil, err
	}
	return created(viewJobSchedule(c, s))
}

func updateJobSchedule(c *call) (*response, error) {
	var req cronjobs.ScheduleChange
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	s, err := cronjobs.UpdateSchedule(c.Session, c.guid(), c.param("schedule"), req)
	if err != nil {
		return nil, err
	}
	return ok(viewJobSchedule(c, s))
}

func deleteJobSchedule(c *call) (*response, error) {
	if err := cronjobs.DeleteSchedule(c.Session, c.guid(), c.param("schedule")); err != nil {
		return nil, err
	}
	return noContent()
}

// listJobExecutions lists the runs of a job, the newest first.
func listJobExecutions(c *call) (*response, error) {
	j, err := findAppJob(c)
	if err != nil {
		return nil, err
	}
	q := ofJob(j)
	q.Desc = true
	return listScheduler(c, store.JobExecutions.Table, viewJobExecution, q, map[string]string{"state": "states"})
}

// listScheduleExecutions lists the runs of a schedule of a job, the newest first.
func listScheduleExecutions(c *call) (*response, error) {
	s, _, _, err := cronjobs.FindSchedule(c.Session, c.guid(), c.param("schedule"))
	if err != nil {
		return nil, err
	}
	q := store.Query{Where: map[string][]string{"schedule_guids": {s.GUID}}, Desc: true}
	return listScheduler(c, store.JobExecutions.Table, viewJobExecution, q, map[string]string{"state": "states"})
}
