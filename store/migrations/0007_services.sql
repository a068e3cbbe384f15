-- Service instances, and what is bound to them. The plan is a broker's.
CREATE TABLE service_instances (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL COLLATE NOCASE, type TEXT NOT NULL CHECK (type IN ('managed','user-provided')),
  space_guid TEXT NOT NULL REFERENCES spaces(guid), shared_spaces TEXT NOT NULL, tags TEXT NOT NULL, last_operation TEXT NOT NULL,
  credentials BLOB NOT NULL, syslog_drain_url BLOB NOT NULL, route_service_url BLOB NOT NULL,
  plan_guid TEXT, dashboard_url TEXT NOT NULL, maintenance_version TEXT NOT NULL, broker_metadata TEXT NOT NULL,
  CHECK ((type = 'managed') = (plan_guid IS NOT NULL)),
  UNIQUE (space_guid, name)
) STRICT;
CREATE INDEX service_instances_plan ON service_instances(plan_guid);

CREATE TABLE service_bindings (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  type TEXT NOT NULL CHECK (type IN ('app','key')), name TEXT,
  instance_guid TEXT NOT NULL REFERENCES service_instances(guid), app_guid TEXT REFERENCES apps(guid),
  credentials BLOB NOT NULL, syslog_drain_url BLOB NOT NULL, volume_mounts BLOB NOT NULL, last_operation TEXT NOT NULL,
  CHECK ((type = 'app') = (app_guid IS NOT NULL))
) STRICT;
CREATE INDEX service_bindings_instance ON service_bindings(instance_guid);
CREATE INDEX service_bindings_app ON service_bindings(app_guid);
CREATE UNIQUE INDEX service_keys_once ON service_bindings(instance_guid, name) WHERE type = 'key';

-- A route has one service at most.
CREATE TABLE route_bindings (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  instance_guid TEXT NOT NULL REFERENCES service_instances(guid), route_guid TEXT NOT NULL UNIQUE REFERENCES routes(guid),
  route_service_url BLOB NOT NULL, last_operation TEXT NOT NULL
) STRICT;
CREATE INDEX route_bindings_instance ON route_bindings(instance_guid);

CREATE INDEX jobs_resource ON jobs(resource_guid);
