-- What apps, tasks, builds and service instances used and when. The rows are
-- written by triggers, so that nothing that changes what is used can forget to.
CREATE TABLE app_usage_events (
  id INTEGER PRIMARY KEY,
  guid TEXT NOT NULL UNIQUE DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a' ||
    substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
  created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)), updated_at INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL, previous_state TEXT NOT NULL,
  app_guid TEXT NOT NULL, app_name TEXT NOT NULL, process_guid TEXT NOT NULL DEFAULT '', process_type TEXT NOT NULL DEFAULT '',
  space_guid TEXT NOT NULL, space_name TEXT NOT NULL, org_guid TEXT NOT NULL,
  buildpack_guid TEXT NOT NULL DEFAULT '', buildpack_name TEXT NOT NULL DEFAULT '', task_guid TEXT NOT NULL DEFAULT '', task_name TEXT NOT NULL DEFAULT '',
  memory_mb INTEGER NOT NULL, previous_memory_mb INTEGER NOT NULL, instances INTEGER NOT NULL DEFAULT 1, previous_instances INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX app_usage_events_created ON app_usage_events(created_at);
CREATE INDEX app_usage_events_task ON app_usage_events(task_guid) WHERE task_guid != '';

CREATE TABLE service_usage_events (
  id INTEGER PRIMARY KEY,
  guid TEXT NOT NULL UNIQUE DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a' ||
    substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
  created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)), updated_at INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL, space_guid TEXT NOT NULL, space_name TEXT NOT NULL, org_guid TEXT NOT NULL,
  instance_guid TEXT NOT NULL, instance_name TEXT NOT NULL, instance_type TEXT NOT NULL,
  plan_guid TEXT NOT NULL, plan_name TEXT NOT NULL, offering_guid TEXT NOT NULL, offering_name TEXT NOT NULL, broker_guid TEXT NOT NULL, broker_name TEXT NOT NULL
) STRICT;
CREATE INDEX service_usage_events_created ON service_usage_events(created_at);

CREATE VIEW droplet_buildpack AS
  SELECT d.guid droplet_guid, coalesce(b ->> 'buildpack_name', b ->> 'name', '') name,
    coalesce((SELECT p.guid FROM buildpacks p WHERE p.name = b ->> 'name' LIMIT 1), '') guid
  FROM (SELECT guid, buildpacks -> '$[#-1]' b FROM droplets) d;

CREATE VIEW process_usage AS
  SELECT p.id id, p.guid process_guid, p.type process_type, p.instances, p.memory_mb, a.guid app_guid, a.name app_name, a.state,
    s.guid space_guid, s.name space_name, s.org_guid, coalesce(b.guid, '') buildpack_guid, coalesce(b.name, '') buildpack_name
  FROM processes p JOIN apps a ON a.guid = p.app_guid JOIN spaces s ON s.guid = a.space_guid LEFT JOIN droplet_buildpack b ON b.droplet_guid = a.droplet_guid;

CREATE TRIGGER usage_of_app AFTER UPDATE OF state ON apps WHEN OLD.state != NEW.state BEGIN
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, process_guid, process_type, space_guid, space_name, org_guid,
    buildpack_guid, buildpack_name, memory_mb, previous_memory_mb, instances, previous_instances)
  SELECT NEW.state, OLD.state, app_guid, app_name, process_guid, process_type, space_guid, space_name, org_guid,
    buildpack_guid, buildpack_name, memory_mb, memory_mb, instances, instances FROM process_usage WHERE app_guid = NEW.guid ORDER BY id;
END;

CREATE TRIGGER usage_of_process AFTER UPDATE OF instances, memory_mb ON processes WHEN OLD.instances != NEW.instances OR OLD.memory_mb != NEW.memory_mb BEGIN
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, process_guid, process_type, space_guid, space_name, org_guid,
    buildpack_guid, buildpack_name, memory_mb, previous_memory_mb, instances, previous_instances)
  SELECT state, state, app_guid, app_name, process_guid, process_type, space_guid, space_name, org_guid,
    buildpack_guid, buildpack_name, memory_mb, OLD.memory_mb, instances, OLD.instances FROM process_usage WHERE process_guid = NEW.guid AND state = 'STARTED';
END;

CREATE TRIGGER usage_of_new_process AFTER INSERT ON processes BEGIN
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, process_guid, process_type, space_guid, space_name, org_guid,
    buildpack_guid, buildpack_name, memory_mb, previous_memory_mb, instances, previous_instances)
  SELECT state, 'STOPPED', app_guid, app_name, process_guid, process_type, space_guid, space_name, org_guid,
    buildpack_guid, buildpack_name, memory_mb, memory_mb, instances, instances FROM process_usage WHERE process_guid = NEW.guid AND state = 'STARTED';
END;

-- What an app's deletion takes along is told before the app is gone.
CREATE TRIGGER usage_of_old_process BEFORE DELETE ON processes BEGIN
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, process_guid, process_type, space_guid, space_name, org_guid,
    buildpack_guid, buildpack_name, memory_mb, previous_memory_mb, instances, previous_instances)
  SELECT 'STOPPED', state, app_guid, app_name, process_guid, process_type, space_guid, space_name, org_guid,
    buildpack_guid, buildpack_name, memory_mb, memory_mb, instances, instances FROM process_usage WHERE process_guid = OLD.guid AND state = 'STARTED';
END;

CREATE TRIGGER usage_of_old_app BEFORE DELETE ON apps BEGIN
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, process_guid, process_type, space_guid, space_name, org_guid,
    buildpack_guid, buildpack_name, memory_mb, previous_memory_mb, instances, previous_instances)
  SELECT 'STOPPED', state, app_guid, app_name, process_guid, process_type, space_guid, space_name, org_guid,
    buildpack_guid, buildpack_name, memory_mb, memory_mb, instances, instances FROM process_usage WHERE app_guid = OLD.guid AND state = 'STARTED' ORDER BY id;
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, space_guid, space_name, org_guid, task_guid, task_name, memory_mb, previous_memory_mb)
  SELECT 'TASK_STOPPED', t.state, OLD.guid, OLD.name, s.guid, s.name, s.org_guid, t.guid, t.name, t.memory_mb, t.memory_mb
    FROM tasks t JOIN spaces s ON s.guid = OLD.space_guid WHERE t.app_guid = OLD.guid AND t.state NOT IN ('SUCCEEDED', 'FAILED');
END;

CREATE TRIGGER usage_of_new_task AFTER INSERT ON tasks BEGIN
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, space_guid, space_name, org_guid, task_guid, task_name, memory_mb, previous_memory_mb)
  SELECT 'TASK_STARTED', NEW.state, a.guid, a.name, s.guid, s.name, s.org_guid, NEW.guid, NEW.name, NEW.memory_mb, NEW.memory_mb
    FROM apps a JOIN spaces s ON s.guid = a.space_guid WHERE a.guid = NEW.app_guid;
END;

CREATE TRIGGER usage_of_task AFTER UPDATE OF state ON tasks
WHEN NEW.state IN ('SUCCEEDED', 'FAILED') AND OLD.state NOT IN ('SUCCEEDED', 'FAILED') BEGIN
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, space_guid, space_name, org_guid, task_guid, task_name, memory_mb, previous_memory_mb)
  SELECT 'TASK_STOPPED', OLD.state, a.guid, a.name, s.guid, s.name, s.org_guid, NEW.guid, NEW.name, NEW.memory_mb, NEW.memory_mb
    FROM apps a JOIN spaces s ON s.guid = a.space_guid WHERE a.guid = NEW.app_guid;
END;

CREATE TRIGGER usage_of_new_build AFTER INSERT ON builds WHEN NEW.state = 'STAGING' BEGIN
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, space_guid, space_name, org_guid, memory_mb, previous_memory_mb)
  SELECT 'STAGING_STARTED', 'STAGING', a.guid, a.name, s.guid, s.name, s.org_guid, NEW.memory_mb, NEW.memory_mb
    FROM apps a JOIN spaces s ON s.guid = a.space_guid WHERE a.guid = NEW.app_guid;
END;

CREATE TRIGGER usage_of_build AFTER UPDATE OF state ON builds WHEN OLD.state = 'STAGING' AND NEW.state != 'STAGING' BEGIN
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, space_guid, space_name, org_guid, buildpack_guid, buildpack_name, memory_mb, previous_memory_mb)
  SELECT e.state, 'STAGING', a.guid, a.name, s.guid, s.name, s.org_guid, coalesce(b.guid, ''), coalesce(b.name, ''), NEW.memory_mb, NEW.memory_mb
    FROM (SELECT 'STAGING_STOPPED' state UNION ALL SELECT 'BUILDPACK_SET' WHERE NEW.state = 'STAGED') e
    JOIN apps a ON a.guid = NEW.app_guid JOIN spaces s ON s.guid = a.space_guid LEFT JOIN droplet_buildpack b ON b.droplet_guid = NEW.droplet_guid;
END;

CREATE VIEW service_usage AS
  SELECT i.id id, i.guid instance_guid, i.name instance_name, CASE i.type WHEN 'managed' THEN 'managed_service_instance' ELSE 'user_provided_service_instance' END instance_type,
    s.guid space_guid, s.name space_name, s.org_guid, coalesce(p.guid, '') plan_guid, coalesce(p.name, '') plan_name,
    coalesce(o.guid, '') offering_guid, coalesce(o.name, '') offering_name, coalesce(b.guid, '') broker_guid, coalesce(b.name, '') broker_name
  FROM service_instances i JOIN spaces s ON s.guid = i.space_guid LEFT JOIN service_plans p ON p.guid = i.plan_guid
    LEFT JOIN service_offerings o ON o.guid = p.offering_guid LEFT JOIN service_brokers b ON b.guid = o.broker_guid;

CREATE TRIGGER usage_of_new_service AFTER INSERT ON service_instances BEGIN
  INSERT INTO service_usage_events (state, space_guid, space_name, org_guid, instance_guid, instance_name, instance_type,
    plan_guid, plan_name, offering_guid, offering_name, broker_guid, broker_name)
  SELECT 'CREATED', space_guid, space_name, org_guid, instance_guid, instance_name, instance_type,
    plan_guid, plan_name, offering_guid, offering_name, broker_guid, broker_name FROM service_usage WHERE instance_guid = NEW.guid;
END;

CREATE TRIGGER usage_of_service AFTER UPDATE OF name, plan_guid ON service_instances WHEN OLD.name IS NOT NEW.name OR OLD.plan_guid IS NOT NEW.plan_guid BEGIN
  INSERT INTO service_usage_events (state, space_guid, space_name, org_guid, instance_guid, instance_name, instance_type,
    plan_guid, plan_name, offering_guid, offering_name, broker_guid, broker_name)
  SELECT 'UPDATED', space_guid, space_name, org_guid, instance_guid, instance_name, instance_type,
    plan_guid, plan_name, offering_guid, offering_name, broker_guid, broker_name FROM service_usage WHERE instance_guid = NEW.guid;
END;

CREATE TRIGGER usage_of_old_service BEFORE DELETE ON service_instances BEGIN
  INSERT INTO service_usage_events (state, space_guid, space_name, org_guid, instance_guid, instance_name, instance_type,
    plan_guid, plan_name, offering_guid, offering_name, broker_guid, broker_name)
  SELECT 'DELETED', space_guid, space_name, org_guid, instance_guid, instance_name, instance_type,
    plan_guid, plan_name, offering_guid, offering_name, broker_guid, broker_name FROM service_usage WHERE instance_guid = OLD.guid;
END;
