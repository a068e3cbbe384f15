-- BOSH deployments. Manifests, variables, what instances are made of and what was asked for hold secrets: they are sealed.
CREATE TABLE bosh_deployments (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, manifest BLOB NOT NULL
) STRICT;

CREATE TABLE bosh_variables (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  deployment_guid TEXT NOT NULL REFERENCES bosh_deployments(guid) ON DELETE CASCADE,
  name TEXT NOT NULL, type TEXT NOT NULL, value BLOB NOT NULL, UNIQUE (deployment_guid, name)
) STRICT;

CREATE TABLE bosh_disks (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  deployment_name TEXT NOT NULL, group_name TEXT NOT NULL, idx INTEGER NOT NULL, az TEXT NOT NULL,
  size_mb INTEGER NOT NULL CHECK (size_mb > 0), orphaned_at INTEGER NOT NULL -- 0: it is an instance's
) STRICT;

CREATE TABLE bosh_instances (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  deployment_guid TEXT NOT NULL REFERENCES bosh_deployments(guid) ON DELETE CASCADE,
  group_name TEXT NOT NULL, idx INTEGER NOT NULL, az TEXT NOT NULL, lifecycle TEXT NOT NULL CHECK (lifecycle IN ('service','errand','auto-errand')),
  disk_guid TEXT REFERENCES bosh_disks(guid),
  goal TEXT NOT NULL CHECK (goal IN ('started','stopped','gone')),
  phase TEXT NOT NULL CHECK (phase IN ('stopped','pre-start','starting','post-start','running','pre-stop','draining','stopping','post-stop')),
  since INTEGER NOT NULL, digest TEXT NOT NULL, next TEXT NOT NULL, renew INTEGER NOT NULL, renewed INTEGER NOT NULL,
  task_guid TEXT NOT NULL, chosen INTEGER NOT NULL, canary INTEGER NOT NULL, failure TEXT NOT NULL,
  UNIQUE (deployment_guid, group_name, idx)
) STRICT;
CREATE INDEX bosh_instances_disk ON bosh_instances(disk_guid);

CREATE TABLE bosh_specs (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  instance_guid TEXT NOT NULL REFERENCES bosh_instances(guid) ON DELETE CASCADE, text BLOB NOT NULL
) STRICT;
CREATE INDEX bosh_specs_instance ON bosh_specs(instance_guid);

CREATE TABLE bosh_calls (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  instance_guid TEXT NOT NULL REFERENCES bosh_instances(guid) ON DELETE CASCADE,
  phase TEXT NOT NULL, digest TEXT NOT NULL, job TEXT NOT NULL, process TEXT NOT NULL, script TEXT NOT NULL, args TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running','succeeded','failed')),
  result BLOB NOT NULL, reason TEXT NOT NULL, ended_at INTEGER NOT NULL
) STRICT;
CREATE INDEX bosh_calls_instance ON bosh_calls(instance_guid);
CREATE INDEX bosh_calls_running ON bosh_calls(state) WHERE state = 'running';

CREATE TABLE bosh_tasks (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  number INTEGER NOT NULL UNIQUE, deployment_name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('deploy','start','stop','restart','recreate','delete','run-errand')), user TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued','processing','done','error','cancelled')),
  ordered BLOB NOT NULL, plan BLOB NOT NULL, result TEXT NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER NOT NULL
) STRICT;
CREATE INDEX bosh_tasks_deployment ON bosh_tasks(deployment_name);
CREATE INDEX bosh_tasks_open ON bosh_tasks(state) WHERE state IN ('queued','processing');

CREATE TABLE bosh_task_events (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  task_guid TEXT NOT NULL REFERENCES bosh_tasks(guid) ON DELETE CASCADE,
  stage TEXT NOT NULL, subject TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('started','finished','failed')), detail TEXT NOT NULL
) STRICT;
CREATE INDEX bosh_task_events_task ON bosh_task_events(task_guid);
