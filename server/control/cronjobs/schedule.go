package cronjobs

import (
	"fmt"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/cron"
	"cupola/store"
	"cupola/store/cf"
)

// expressionType is the only type of expressions that Cloud Foundry's scheduler has.
const expressionType = "cron_expression"

// NewSchedule is a schedule to be made. TimeZone is short for CRON_TZ in the expression.
type NewSchedule struct {
	sent
	Enabled        change.Field[bool] `json:"enabled"`
	Expression     string             `json:"expression"`
	ExpressionType string             `json:"expression_type"`
	TimeZone       string             `json:"time_zone"`
}

// Validate lists what is wrong with a request alone.
func (r NewSchedule) Validate() []string {
	if r.ExpressionType != "" && r.ExpressionType != expressionType {
		return []string{fmt.Sprintf("Expression type must be %q", expressionType)}
	}
	if _, err := cron.In(r.Expression, r.TimeZone); err != nil {
		return []string{"Expression is invalid: " + err.Error()}
	}
	return nil
}

// AddSchedule lets a job run when an expression is due.
func AddSchedule(c *control.Session, kind cf.AppJobKind, jobGUID string, req NewSchedule) (*cf.JobSchedule, error) {
	j, app, err := Find(c, kind, jobGUID)
	if err != nil {
		return nil, err
	}
	return addSchedule(c, j, app, req)
}

func addSchedule(c *control.Session, j *cf.AppJob, app *cf.App, req NewSchedule) (*cf.JobSchedule, error) {
	n, err := store.JobSchedules.Count(c.Tx, store.Query{Where: map[string][]string{"job_guids": {j.GUID}}})
	if err != nil {
		return nil, err
	}
	if n >= maxSchedules {
		return nil, cf.Unprocessable("A %s can have at most %d schedules: delete one first.", j.Kind, maxSchedules)
	}
	s := &cf.JobSchedule{JobGUID: j.GUID, Enabled: req.Enabled.Or(true)}
	if s.Expression, err = cron.In(req.Expression, req.TimeZone); err != nil {
		return nil, cf.Unprocessable("Expression is invalid: %s", err)
	}
	if err := setNext(c, s); err != nil {
		return nil, err
	}
	if err := store.JobSchedules.Insert(c.Tx, s); err != nil {
		return nil, err
	}
	return s, event(c, audit.AppJobSchedule, app, j, audit.Data{"schedule_guid": s.GUID, "expression": s.Expression, "enabled": s.Enabled})
}

// TimeZone is the time zone of a schedule's expression.
func TimeZone(s *cf.JobSchedule) string {
	e, err := cron.Parse(s.Expression)
	if err != nil {
		return ""
	}
	return e.TimeZone()
}

// setNext sets when a schedule is due next.
func setNext(c *control.Session, s *cf.JobSchedule) error {
	e, err := cron.Parse(s.Expression)
	if err == nil {
		s.NextAt = e.Next(c.Tx.Now)
	}
	return err
}

// FindSchedule is a schedule of a job, if the actor sees it and satisfies the rule there.
func FindSchedule(c *control.Session, kind cf.AppJobKind, jobGUID, guid string) (*cf.JobSchedule, *cf.AppJob, *cf.App, error) {
	j, app, err := Find(c, kind, jobGUID)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := store.JobSchedules.Get(c.Tx, guid)
	if err == nil && s.JobGUID != j.GUID {
		err = store.JobSchedules.NotFound()
	}
	return s, j, app, err
}

// ScheduleChange pauses a schedule, or lets it go on from now.
type ScheduleChange struct {
	Enabled change.Field[bool] `json:"enabled"`
}

// UpdateSchedule changes a schedule. Runs that were due while it was paused are not made up for.
func UpdateSchedule(c *control.Session, kind cf.AppJobKind, jobGUID, guid string, req ScheduleChange) (*cf.JobSchedule, error) {
	s, j, app, err := FindSchedule(c, kind, jobGUID, guid)
	if err != nil || !req.Enabled.Set || req.Enabled.V == s.Enabled {
		return s, err
	}
	s.Enabled = req.Enabled.V
	if err := setNext(c, s); err != nil {
		return nil, err
	}
	if err := store.JobSchedules.Update(c.Tx, s); err != nil {
		return nil, err
	}
	return s, event(c, audit.AppJobSchedule, app, j, audit.Data{"schedule_guid": s.GUID, "expression": s.Expression, "enabled": s.Enabled})
}

// DeleteSchedule deletes a schedule of a job. Its runs stay in the history.
func DeleteSchedule(c *control.Session, kind cf.AppJobKind, jobGUID, guid string) error {
	s, j, app, err := FindSchedule(c, kind, jobGUID, guid)
	if err != nil {
		return err
	}
	return deleteSchedule(c, s, j, app)
}

func deleteSchedule(c *control.Session, s *cf.JobSchedule, j *cf.AppJob, app *cf.App) error {
	if err := event(c, audit.AppJobUnschedule, app, j, audit.Data{"schedule_guid": s.GUID, "expression": s.Expression}); err != nil {
		return err
	}
	return store.JobSchedules.Delete(c.Tx, s.GUID)
}
