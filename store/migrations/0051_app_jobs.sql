-- Commands of apps that run as tasks, when their schedules say or when asked for, and what became of each run.
CREATE TABLE app_jobs (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  name TEXT NOT NULL, command BLOB NOT NULL,
  memory_mb INTEGER NOT NULL, disk_mb INTEGER NOT NULL, -- 0: as other tasks
  timeout INTEGER NOT NULL, -- seconds
  state TEXT NOT NULL -- of its last run
) STRICT;
CREATE INDEX app_jobs_app ON app_jobs(app_guid, name);
CREATE INDEX app_jobs_name ON app_jobs(name);
CREATE TABLE job_schedules (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  job_guid TEXT NOT NULL REFERENCES app_jobs(guid) ON DELETE CASCADE,
  expression TEXT NOT NULL, enabled INTEGER NOT NULL,
  next_at INTEGER NOT NULL -- the first time that is not yet dealt with
) STRICT;
CREATE INDEX job_schedules_job ON job_schedules(job_guid);
CREATE TABLE job_executions (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  job_guid TEXT NOT NULL REFERENCES app_jobs(guid) ON DELETE CASCADE,
  schedule_guid TEXT NOT NULL, -- '': it was asked for
  task_guid TEXT NOT NULL, task_name TEXT NOT NULL, -- '': there was none
  state TEXT NOT NULL CHECK (state IN ('RUNNING','SUCCEEDED','FAILED','SKIPPED')),
  message TEXT NOT NULL,
  scheduled_at INTEGER NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER NOT NULL
) STRICT;
CREATE INDEX job_executions_job ON job_executions(job_guid, id);
CREATE INDEX job_executions_running ON job_executions(state) WHERE state = 'RUNNING';
