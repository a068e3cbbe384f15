-- Tasks of any kind: also what was done at once, and recorded as a task that has ended.
-- The tables are made again, since a CHECK cannot be dropped.
CREATE TABLE bosh_tasks_new (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  number INTEGER NOT NULL UNIQUE, deployment_name TEXT NOT NULL, kind TEXT NOT NULL, user TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued','processing','done','error','cancelled')),
  ordered BLOB NOT NULL, plan BLOB NOT NULL, result TEXT NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER NOT NULL
) STRICT;
INSERT INTO bosh_tasks_new SELECT id, guid, created_at, updated_at, number, deployment_name, kind, user, state, ordered, plan, result, started_at, ended_at FROM bosh_tasks;
CREATE TABLE bosh_task_events_new (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  task_guid TEXT NOT NULL REFERENCES bosh_tasks_new(guid) ON DELETE CASCADE,
  stage TEXT NOT NULL, subject TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('started','finished','failed')), detail TEXT NOT NULL
) STRICT;
INSERT INTO bosh_task_events_new SELECT id, guid, created_at, updated_at, task_guid, stage, subject, state, detail FROM bosh_task_events;
DROP TABLE bosh_task_events;
DROP TABLE bosh_tasks;
ALTER TABLE bosh_tasks_new RENAME TO bosh_tasks;
ALTER TABLE bosh_task_events_new RENAME TO bosh_task_events;
CREATE INDEX bosh_tasks_deployment ON bosh_tasks(deployment_name);
CREATE INDEX bosh_tasks_open ON bosh_tasks(state) WHERE state IN ('queued','processing');
CREATE INDEX bosh_tasks_kind ON bosh_tasks(kind, number);
CREATE INDEX bosh_task_events_task ON bosh_task_events(task_guid);
