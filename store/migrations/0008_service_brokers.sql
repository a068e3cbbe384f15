-- Service brokers, what their catalogs offer, and what they were asked to do.

CREATE TABLE service_brokers (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL UNIQUE, url TEXT NOT NULL, username TEXT NOT NULL, password BLOB NOT NULL,
  space_guid TEXT REFERENCES spaces(guid) ON DELETE CASCADE,
  state TEXT NOT NULL CHECK (state IN ('SYNCHRONIZING','SYNCHRONIZATION_FAILED','AVAILABLE'))
) STRICT;
CREATE INDEX service_brokers_space ON service_brokers(space_guid);

CREATE TABLE service_offerings (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  broker_guid TEXT NOT NULL REFERENCES service_brokers(guid) ON DELETE CASCADE,
  catalog_id TEXT NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL, active INTEGER NOT NULL,
  bindable INTEGER NOT NULL, plan_updateable INTEGER NOT NULL, instances_retrievable INTEGER NOT NULL,
  bindings_retrievable INTEGER NOT NULL, allow_context_updates INTEGER NOT NULL,
  tags TEXT NOT NULL, requires TEXT NOT NULL, broker_metadata TEXT NOT NULL,
  UNIQUE (broker_guid, catalog_id)
) STRICT;
CREATE INDEX service_offerings_name ON service_offerings(name);

CREATE TABLE service_plans (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  offering_guid TEXT NOT NULL REFERENCES service_offerings(guid) ON DELETE CASCADE,
  catalog_id TEXT NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL,
  active INTEGER NOT NULL, free INTEGER NOT NULL, public INTEGER NOT NULL,
  bindable INTEGER, plan_updateable INTEGER, maximum_polling_duration INTEGER,
  maintenance_info TEXT NOT NULL, broker_metadata TEXT NOT NULL, schemas TEXT NOT NULL,
  UNIQUE (offering_guid, catalog_id)
) STRICT;
CREATE INDEX service_plans_name ON service_plans(name);

CREATE TABLE service_plan_visibilities (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  plan_guid TEXT NOT NULL REFERENCES service_plans(guid) ON DELETE CASCADE,
  org_guid TEXT NOT NULL REFERENCES orgs(guid) ON DELETE CASCADE,
  UNIQUE (plan_guid, org_guid)
) STRICT;
CREATE INDEX service_plan_visibilities_org ON service_plan_visibilities(org_guid);

-- An operation of a job ends with it; one of an orphan belongs to no job.
CREATE TABLE broker_operations (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  job_guid TEXT UNIQUE REFERENCES jobs(guid) ON DELETE CASCADE,
  phase TEXT NOT NULL CHECK (phase IN ('send','poll')),
  due_at INTEGER NOT NULL, attempts INTEGER NOT NULL, operation TEXT NOT NULL, orphan TEXT NOT NULL
) STRICT;
CREATE INDEX broker_operations_due ON broker_operations(due_at);
