package api

import (
	"strings"
	"time"

	"cupola/server/authz"
	"cupola/server/control"
	"cupola/server/control/cronjobs"
	"cupola/store"
	"cupola/store/cf"
)

// The routes of jobs of apps are those of Cloud Foundry's scheduler, whose CLI plugin finds them
// at the host "scheduler".

// viewAppJob shows a job or a call. What it runs, or the URL, is shown to users who may see
// commands of tasks; the Authorization of a call is never shown.
func viewAppJob(c *call, j *cf.AppJob) doc {
	d := with(resource(j.Resource), doc{"name": j.Name, "timeout_in_seconds": j.Timeout, "state": j.State, "app_guid": j.AppGUID})
	secret, value := "url", j.URL
	if j.Kind == cf.KindJob {
		d["memory_in_mb"], d["disk_in_mb"] = j.MemoryMB, j.DiskMB
		secret, value = "command", j.Command
	}
	app, err := recall(c, store.Apps, j.AppGUID)
	if err != nil {
		return d
	}
	d["space_guid"] = app.SpaceGUID
	place, err := c.PlaceOf(app)
	if err == nil && c.Actor.May(commandReader, place) {
		d[secret] = value
	}
	return d
}

// scheduled are the handlers of jobs, or of calls: the scheduler has the same for both.
type scheduled cf.AppJobKind

func (k scheduled) routes() []route {
	at := "/" + string(k) + "s"
	return []route{
		{"GET " + at, authz.Anyone, inTx(k.list)},
		{"POST " + at, authz.SpaceDeveloper, inTx(k.create)},
		{"GET " + at + "/{guid}", authz.SpaceReader, inTx(showFound(k.find, viewAppJob))},
		{"DELETE " + at + "/{guid}", authz.SpaceDeveloper, inTx(k.delete)},
		{"POST " + at + "/{guid}/execute", authz.SpaceDeveloper, inTx(k.execute)},
		{"GET " + at + "/{guid}/history", authz.SpaceReader, inTx(k.listExecutions)},
		{"GET " + at + "/{guid}/schedules", authz.SpaceReader, inTx(k.listSchedules)},
		{"POST " + at + "/{guid}/schedules", authz.SpaceDeveloper, inTx(k.createSchedule)},
		{"PATCH " + at + "/{guid}/schedules/{schedule}", authz.SpaceDeveloper, inTx(k.updateSchedule)},
		{"DELETE " + at + "/{guid}/schedules/{schedule}", authz.SpaceDeveloper, inTx(k.deleteSchedule)},
		{"GET " + at + "/{guid}/schedules/{schedule}/history", authz.SpaceReader, inTx(k.listScheduleExecutions)},
	}
}

// owner is the field with the GUID of the job or call that something is of.
func (k scheduled) owner() string { return string(k) + "_guid" }

func (k scheduled) viewSchedule(_ *call, s *cf.JobSchedule) doc {
	d := with(resource(s.Resource), doc{k.owner(): s.JobGUID, "enabled": s.Enabled, "expression": s.Expression,
		"expression_type": "cron_expression", "time_zone": cronjobs.TimeZone(s), "next_time": orNever(s.NextAt)})
	if !s.Enabled {
		d["next_time"] = nil
	}
	return d
}

func (k scheduled) viewExecution(_ *call, x *cf.JobExecution) doc {
	d := with(resource(x.Resource), doc{k.owner(): x.JobGUID, "schedule_guid": x.ScheduleGUID, "state": x.State, "message": x.Message,
		"scheduled_time": orNever(x.ScheduledAt), "execution_start_time": orNever(x.StartedAt), "execution_end_time": orNever(x.EndedAt)})
	if cf.AppJobKind(k) == cf.KindJob {
		d["task_guid"], d["task_name"] = x.TaskGUID, x.TaskName
	}
	return d
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

func (k scheduled) list(c *call) (*response, error) {
	q := store.Query{Order: "name", Where: map[string][]string{"kinds": {string(k)}}}
	return listScheduler(c, store.AppJobs, viewAppJob, q, map[string]string{"space_guid": "space_guids", "app_guid": "app_guids", "name": "names"})
}

func (k scheduled) create(c *call) (*response, error) {
	if cf.AppJobKind(k) == cf.KindCall {
		return createOf(c, cronjobs.CreateCall)
	}
	return createOf(c, cronjobs.Create)
}

// createOf makes a job or a call of the app that the query names.
func createOf[R any](c *call, verb func(*control.Session, *cf.App, R) (*cf.AppJob, error)) (*response, error) {
	var req R
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	app, err := c.App(c.Request.URL.Query().Get("app_guid"))
	if err != nil {
		return nil, control.Unprocessable(err, "The query parameter app_guid must be the GUID of an app that you have access to.")
	}
	j, err := verb(c.Session, app, req)
	if err != nil {
		return nil, err
	}
	return created(viewAppJob(c, j))
}

func (k scheduled) find(c *call) (*cf.AppJob, error) {
	j, _, err := cronjobs.Find(c.Session, cf.AppJobKind(k), c.guid())
	return j, err
}

func (k scheduled) delete(c *call) (*response, error) {
	if err := cronjobs.Delete(c.Session, cf.AppJobKind(k), c.guid()); err != nil {
		return nil, err
	}
	return noContent()
}

func (k scheduled) execute(c *call) (*response, error) {
	x, err := cronjobs.Execute(c.Session, cf.AppJobKind(k), c.guid())
	if err != nil {
		return nil, err
	}
	return created(k.viewExecution(c, x))
}

func (k scheduled) listSchedules(c *call) (*response, error) {
	j, err := k.find(c)
	if err != nil {
		return nil, err
	}
	return listScheduler(c, store.JobSchedules.Table, k.viewSchedule, ofJob(j), nil)
}

// ofJob selects the resources of a job.
func ofJob(j *cf.AppJob) store.Query {
	return store.Query{Where: map[string][]string{"job_guids": {j.GUID}}}
}

func (k scheduled) createSchedule(c *call) (*response, error) {
	var req cronjobs.NewSchedule
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	s, err := cronjobs.AddSchedule(c.Session, cf.AppJobKind(k), c.guid(), req)
	if err != nil {
		return nil, err
	}
	return created(k.viewSchedule(c, s))
}

func (k scheduled) updateSchedule(c *call) (*response, error) {
	var req cronjobs.ScheduleChange
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	s, err := cronjobs.UpdateSchedule(c.Session, cf.AppJobKind(k), c.guid(), c.param("schedule"), req)
	if err != nil {
		return nil, err
	}
	return ok(k.viewSchedule(c, s))
}

func (k scheduled) deleteSchedule(c *call) (*response, error) {
	if err := cronjobs.DeleteSchedule(c.Session, cf.AppJobKind(k), c.guid(), c.param("schedule")); err != nil {
		return nil, err
	}
	return noContent()
}

// listExecutions lists the runs of a job, the newest first.
func (k scheduled) listExecutions(c *call) (*response, error) {
	j, err := k.find(c)
	if err != nil {
		return nil, err
	}
	return k.listRuns(c, ofJob(j))
}

// listScheduleExecutions lists the runs of a schedule of a job, the newest first.
func (k scheduled) listScheduleExecutions(c *call) (*response, error) {
	s, _, _, err := cronjobs.FindSchedule(c.Session, cf.AppJobKind(k), c.guid(), c.param("schedule"))
	if err != nil {
		return nil, err
	}
	return k.listRuns(c, store.Query{Where: map[string][]string{"schedule_guids": {s.GUID}}})
}

func (k scheduled) listRuns(c *call, q store.Query) (*response, error) {
	q.Desc = true
	return listScheduler(c, store.JobExecutions.Table, k.viewExecution, q, map[string]string{"state": "states"})
}
