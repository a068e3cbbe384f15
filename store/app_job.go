package store

import "cupola/store/cf"

// AppJobs are the jobs of apps. They end with their app.
var AppJobs = &Table[cf.AppJob]{table{
	name: "app_jobs", singular: "Job",
	columns: "guid, created_at, updated_at, app_guid, kind, name, command, memory_mb, disk_mb, url, auth_header, timeout, state",
	fields: fieldsOf(func(v *cf.AppJob, k *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			&v.AppGUID, &v.Kind, &v.Name, sealedColumn{k, &v.Command}, &v.MemoryMB, &v.DiskMB, sealedColumn{k, &v.URL}, sealedColumn{k, &v.AuthHeader}, &v.Timeout, &v.State}
	}),
	resource: resourceOf(func(v *cf.AppJob) *cf.Resource { return &v.Resource }),
	filters: map[string]string{"guids": "app_jobs.guid", "app_guids": "app_guid", "kinds": "kind", "names": "name",
		"space_guids": "app_guid IN (SELECT guid FROM apps WHERE space_guid IN (SELECT value FROM json_each(?)))"},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "name"},
	visible: "app_guid IN (SELECT guid FROM apps WHERE space_guid IN :spaces)",
}}

// JobSchedules are the schedules of jobs of apps. They end with their job.
var JobSchedules = jobSchedules{&Table[cf.JobSchedule]{table{
	name: "job_schedules", singular: "Schedule",
	columns: "guid, created_at, updated_at, job_guid, expression, enabled, next_at",
	fields: fieldsOf(func(v *cf.JobSchedule, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.JobGUID, &v.Expression, &v.Enabled, timeColumn{&v.NextAt}}
	}),
	resource: resourceOf(func(v *cf.JobSchedule) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "job_schedules.guid", "job_guids": "job_guid"},
	orders:   map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible:  "job_guid IN (SELECT j.guid FROM app_jobs j JOIN apps a ON a.guid = j.app_guid WHERE a.space_guid IN :spaces)",
}}}

type jobSchedules struct{ *Table[cf.JobSchedule] }

// Enabled are the schedules that are not paused.
func (t jobSchedules) Enabled(tx *Tx) ([]*cf.JobSchedule, error) {
	return query(tx, t.Table, "SELECT "+t.table.columns+" FROM job_schedules WHERE enabled ORDER BY next_at")
}

// JobExecutions are the runs of jobs of apps. They end with their job.
var JobExecutions = jobExecutions{&Table[cf.JobExecution]{table{
	name: "job_executions", singular: "Execution",
	columns: "guid, created_at, updated_at, job_guid, schedule_guid, task_guid, task_name, state, message, scheduled_at, started_at, ended_at",
	fields: fieldsOf(func(v *cf.JobExecution, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.JobGUID, &v.ScheduleGUID, &v.TaskGUID, &v.TaskName,
			&v.State, &v.Message, timeColumn{&v.ScheduledAt}, timeColumn{&v.StartedAt}, timeColumn{&v.EndedAt}}
	}),
	resource: resourceOf(func(v *cf.JobExecution) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "job_executions.guid", "job_guids": "job_guid", "schedule_guids": "schedule_guid", "states": "state"},
	orders:   map[string]string{"created_at": "created_at", "updated_at": "updated_at"},
	visible:  "job_guid IN (SELECT j.guid FROM app_jobs j JOIN apps a ON a.guid = j.app_guid WHERE a.space_guid IN :spaces)",
}}}

type jobExecutions struct{ *Table[cf.JobExecution] }

// Running are the runs of all jobs that have not ended. It looks at no others, of which
// there are many.
func (t jobExecutions) Running(tx *Tx) ([]*cf.JobExecution, error) {
	return query(tx, t.Table, "SELECT "+t.table.columns+" FROM job_executions WHERE state = 'RUNNING' ORDER BY id")
}

// Forget deletes all but the newest runs of a job that have ended.
func (t jobExecutions) Forget(tx *Tx, jobGUID string, kept int) error {
	_, err := tx.exec("DELETE FROM job_executions WHERE job_guid = ? AND state <> 'RUNNING' AND id <= (SELECT id FROM job_executions WHERE job_guid = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
		jobGUID, jobGUID, kept)
	return err
}
