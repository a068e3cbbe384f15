-- Made by go test ./store -run Baseline -update
CREATE TABLE org_quotas (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL UNIQUE, limits TEXT NOT NULL
) STRICT;
CREATE TABLE orgs (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL UNIQUE COLLATE NOCASE, suspended INTEGER NOT NULL,
  quota_guid TEXT REFERENCES org_quotas(guid)
, isolation_segment TEXT REFERENCES isolation_segments(guid)) STRICT;
CREATE INDEX orgs_quota ON orgs(quota_guid);
CREATE TABLE spaces (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL COLLATE NOCASE, org_guid TEXT NOT NULL REFERENCES orgs(guid), allow_ssh INTEGER NOT NULL, isolation_segment TEXT REFERENCES isolation_segments(guid), placement_pool TEXT REFERENCES placement_pools(guid) ON DELETE SET NULL, quota_guid TEXT REFERENCES space_quotas(guid) ON DELETE SET NULL,
  UNIQUE (org_guid, name)
) STRICT;
CREATE TABLE users (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  username TEXT NOT NULL COLLATE NOCASE, origin TEXT NOT NULL, password_hash TEXT NOT NULL,
  given_name TEXT NOT NULL, family_name TEXT NOT NULL, email TEXT NOT NULL, scopes TEXT NOT NULL, token_salt TEXT NOT NULL DEFAULT '',
  UNIQUE (username, origin)
) STRICT;
CREATE TABLE roles (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  type TEXT NOT NULL CHECK (type IN ('organization_user','organization_manager','organization_auditor','organization_billing_manager',
    'space_developer','space_manager','space_auditor','space_supporter')),
  user_guid TEXT NOT NULL REFERENCES users(guid) ON DELETE CASCADE,
  org_guid TEXT NOT NULL REFERENCES orgs(guid) ON DELETE CASCADE,
  space_guid TEXT REFERENCES spaces(guid) ON DELETE CASCADE
) STRICT;
CREATE UNIQUE INDEX roles_once ON roles(user_guid, type, org_guid, coalesce(space_guid, ''));
CREATE INDEX roles_org ON roles(org_guid);
CREATE INDEX roles_space ON roles(space_guid);
CREATE TABLE domains (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL UNIQUE COLLATE NOCASE, internal INTEGER NOT NULL,
  org_guid TEXT REFERENCES orgs(guid), shared_orgs TEXT NOT NULL
, router_group_guid TEXT NOT NULL DEFAULT '', enforces_policies INTEGER NOT NULL DEFAULT 0, policies_scope TEXT NOT NULL DEFAULT '') STRICT;
CREATE INDEX domains_org ON domains(org_guid);
CREATE TABLE stacks (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL UNIQUE, description TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('ACTIVE','RESTRICTED','DEPRECATED','DISABLED')), state_reason TEXT NOT NULL,
  compat TEXT NOT NULL, is_default INTEGER NOT NULL
) STRICT;
CREATE TABLE buildpacks (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL, stack TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('AWAITING_UPLOAD','READY')),
  position INTEGER NOT NULL, enabled INTEGER NOT NULL, locked INTEGER NOT NULL, lifecycle TEXT NOT NULL,
  filename TEXT NOT NULL, digest TEXT NOT NULL, system TEXT NOT NULL,
  UNIQUE (name, stack, lifecycle)
) STRICT;
CREATE TABLE apps (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL COLLATE NOCASE, space_guid TEXT NOT NULL REFERENCES spaces(guid),
  state TEXT NOT NULL CHECK (state IN ('STARTED','STOPPED')),
  lifecycle TEXT NOT NULL, env BLOB NOT NULL, droplet_guid TEXT,
  ssh_enabled INTEGER NOT NULL, revisions_on INTEGER NOT NULL, rev INTEGER NOT NULL, current_revision TEXT, credentials BLOB NOT NULL DEFAULT x'', binding_form TEXT NOT NULL DEFAULT ''
  CHECK (binding_form IN ('', 'file-based-vcap-services', 'service-binding-k8s', 'file-based-servicebinding-io')), placement_pool TEXT REFERENCES placement_pools(guid) ON DELETE SET NULL,
  UNIQUE (space_guid, name)
) STRICT;
CREATE TABLE processes (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  type TEXT NOT NULL, command TEXT NOT NULL, instances INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_mb INTEGER NOT NULL,
  log_rate_limit INTEGER NOT NULL, health_check TEXT NOT NULL, readiness_check TEXT NOT NULL,
  revision_guid TEXT NOT NULL, user TEXT NOT NULL, sidecars TEXT NOT NULL
, placement TEXT NOT NULL DEFAULT '{}', droplet_guid TEXT NOT NULL DEFAULT '', rev INTEGER NOT NULL DEFAULT 0, services BLOB NOT NULL DEFAULT x'', binding_form TEXT NOT NULL DEFAULT '') STRICT;
CREATE INDEX processes_app ON processes(app_guid);
CREATE TABLE packages (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  type TEXT NOT NULL CHECK (type IN ('bits','docker')),
  state TEXT NOT NULL CHECK (state IN ('AWAITING_UPLOAD','PROCESSING_UPLOAD','READY','FAILED','COPYING','EXPIRED')),
  error TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL, image TEXT NOT NULL
, credential BLOB NOT NULL DEFAULT x'') STRICT;
CREATE INDEX packages_app ON packages(app_guid);
CREATE TABLE builds (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  package_guid TEXT NOT NULL, droplet_guid TEXT,
  state TEXT NOT NULL CHECK (state IN ('STAGING','STAGED','FAILED')), error TEXT NOT NULL,
  lifecycle TEXT NOT NULL, memory_mb INTEGER NOT NULL, disk_mb INTEGER NOT NULL, log_rate_limit INTEGER NOT NULL,
  created_by TEXT NOT NULL, env BLOB NOT NULL
, credentials BLOB NOT NULL DEFAULT x'', placement TEXT NOT NULL DEFAULT '{}', buildpack TEXT NOT NULL DEFAULT '', inputs TEXT NOT NULL DEFAULT '') STRICT;
CREATE INDEX builds_app ON builds(app_guid);
CREATE INDEX builds_package ON builds(package_guid);
CREATE TABLE droplets (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  package_guid TEXT, build_guid TEXT,
  state TEXT NOT NULL CHECK (state IN ('AWAITING_UPLOAD','PROCESSING_UPLOAD','COPYING','STAGED','EXPIRED','FAILED')),
  error TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL, stack TEXT NOT NULL, lifecycle TEXT NOT NULL,
  buildpacks TEXT NOT NULL, process_types TEXT NOT NULL, sidecars TEXT NOT NULL, execution_metadata TEXT NOT NULL, image TEXT NOT NULL
) STRICT;
CREATE INDEX droplets_app ON droplets(app_guid);
CREATE INDEX droplets_package ON droplets(package_guid);
CREATE TABLE tasks (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE, droplet_guid TEXT NOT NULL,
  sequence_id INTEGER NOT NULL, name TEXT NOT NULL, command BLOB NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('PENDING','RUNNING','SUCCEEDED','CANCELING','FAILED')),
  memory_mb INTEGER NOT NULL, disk_mb INTEGER NOT NULL, log_rate_limit INTEGER NOT NULL, user TEXT NOT NULL,
  failure_reason TEXT NOT NULL, env BLOB NOT NULL, placement TEXT NOT NULL DEFAULT '{}', build_guid TEXT NOT NULL DEFAULT '',
  UNIQUE (app_guid, sequence_id)
) STRICT;
CREATE TABLE revisions (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  version INTEGER NOT NULL, droplet_guid TEXT NOT NULL, description TEXT NOT NULL, env BLOB NOT NULL, commands TEXT NOT NULL, sidecars TEXT NOT NULL,
  UNIQUE (app_guid, version)
) STRICT;
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  operation TEXT NOT NULL, resource_guid TEXT NOT NULL, resource_type TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('PROCESSING','POLLING','COMPLETE','FAILED')), errors TEXT NOT NULL, warnings TEXT NOT NULL, input BLOB NOT NULL
) STRICT;
CREATE INDEX jobs_state ON jobs(state);
CREATE TABLE events (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  type TEXT NOT NULL, actor TEXT NOT NULL, target_guid TEXT NOT NULL, target_type TEXT NOT NULL, target_name TEXT NOT NULL,
  space_guid TEXT NOT NULL, org_guid TEXT NOT NULL, data TEXT NOT NULL
) STRICT;
CREATE INDEX events_target ON events(target_guid);
CREATE INDEX events_space ON events(space_guid);
CREATE INDEX events_created ON events(created_at);
CREATE TABLE feature_flags (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, enabled INTEGER NOT NULL, custom_error_message TEXT NOT NULL
, updated_at INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE security_groups (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL UNIQUE, rules TEXT NOT NULL, global_running INTEGER NOT NULL, global_staging INTEGER NOT NULL,
  running_spaces TEXT NOT NULL, staging_spaces TEXT NOT NULL
) STRICT;
CREATE TABLE env_groups (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE CHECK (name IN ('running','staging')), vars BLOB NOT NULL
, updated_at INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE settings (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, value BLOB NOT NULL
) STRICT;
CREATE TABLE resources (
  sha1 TEXT PRIMARY KEY, size INTEGER NOT NULL, digest TEXT NOT NULL, used_at INTEGER NOT NULL
, entry TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;
CREATE TABLE build_caches (
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE, stack TEXT NOT NULL, digest TEXT NOT NULL,
  PRIMARY KEY (app_guid, stack)
) STRICT, WITHOUT ROWID;
CREATE TABLE actual_lrps (
  id INTEGER PRIMARY KEY, process_guid TEXT NOT NULL, idx INTEGER NOT NULL, domain TEXT NOT NULL,
  instance_guid TEXT NOT NULL, cell_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('UNCLAIMED','CLAIMED','RUNNING','CRASHED')),
  crash_count INTEGER NOT NULL, crash_reason TEXT NOT NULL, placement_error TEXT NOT NULL, since INTEGER NOT NULL,
  address TEXT NOT NULL, ports TEXT NOT NULL, ready INTEGER NOT NULL, stopping INTEGER NOT NULL, epoch TEXT NOT NULL DEFAULT '', revision INTEGER NOT NULL DEFAULT 0, role TEXT NOT NULL DEFAULT '' CHECK (role IN ('', 'active', 'passive')), owner_guid TEXT NOT NULL DEFAULT '', owner_part TEXT NOT NULL DEFAULT '', tls_ports INTEGER NOT NULL DEFAULT 0 CHECK (tls_ports IN (0, 1)),
  UNIQUE (process_guid, idx)
) STRICT;
CREATE INDEX actual_lrps_instance ON actual_lrps(instance_guid);
CREATE TABLE lrp_tasks (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, domain TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('PENDING','RUNNING','COMPLETED')), cell_id TEXT NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  failed INTEGER NOT NULL, failure_reason TEXT NOT NULL, result BLOB NOT NULL, outputs TEXT NOT NULL,
  rejections INTEGER NOT NULL, rejection_reason TEXT NOT NULL, cancelled INTEGER NOT NULL
) STRICT;
CREATE TABLE isolation_segments (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL COLLATE NOCASE UNIQUE, orgs TEXT NOT NULL
) STRICT;
CREATE TABLE placement_pools (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL COLLATE NOCASE UNIQUE, require TEXT NOT NULL, disallow TEXT NOT NULL,
  is_default INTEGER NOT NULL CHECK (is_default IN (0,1))
) STRICT;
CREATE UNIQUE INDEX placement_pools_default ON placement_pools(is_default) WHERE is_default = 1;
CREATE INDEX orgs_isolation_segment ON orgs(isolation_segment);
CREATE INDEX spaces_isolation_segment ON spaces(isolation_segment);
CREATE INDEX spaces_placement_pool ON spaces(placement_pool);
CREATE TABLE bbs_desired_lrps (
  id INTEGER PRIMARY KEY, process_guid TEXT NOT NULL UNIQUE, domain TEXT NOT NULL,
  instances INTEGER NOT NULL CHECK (instances >= 0), epoch TEXT NOT NULL, revision INTEGER NOT NULL,
  message BLOB NOT NULL
) STRICT;
CREATE TABLE bbs_domains (
  id INTEGER PRIMARY KEY, domain TEXT NOT NULL UNIQUE, expires_at INTEGER NOT NULL -- 0: never
) STRICT;
CREATE TABLE bbs_tasks (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, run_guid TEXT NOT NULL UNIQUE, domain TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('PENDING','RUNNING','COMPLETED','RESOLVING')), cell_id TEXT NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, first_completed_at INTEGER NOT NULL,
  failed INTEGER NOT NULL, failure_reason TEXT NOT NULL, result BLOB NOT NULL,
  rejections INTEGER NOT NULL, rejection_reason TEXT NOT NULL, callback INTEGER NOT NULL, definition BLOB NOT NULL
) STRICT;
CREATE INDEX bbs_tasks_state ON bbs_tasks(state);
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
CREATE TABLE route_bindings (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  instance_guid TEXT NOT NULL REFERENCES service_instances(guid), route_guid TEXT NOT NULL UNIQUE REFERENCES routes(guid),
  route_service_url BLOB NOT NULL, last_operation TEXT NOT NULL
) STRICT;
CREATE INDEX route_bindings_instance ON route_bindings(instance_guid);
CREATE INDEX jobs_resource ON jobs(resource_guid);
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
  maintenance_info TEXT NOT NULL, broker_metadata TEXT NOT NULL, schemas TEXT NOT NULL, binding_rotatable INTEGER NOT NULL DEFAULT 0,
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
CREATE TABLE broker_operations (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  job_guid TEXT UNIQUE REFERENCES jobs(guid) ON DELETE CASCADE,
  phase TEXT NOT NULL CHECK (phase IN ('send','poll')),
  due_at INTEGER NOT NULL, attempts INTEGER NOT NULL, operation TEXT NOT NULL, orphan TEXT NOT NULL
, broker_guid TEXT NOT NULL DEFAULT '') STRICT;
CREATE INDEX broker_operations_due ON broker_operations(due_at);
CREATE TABLE deployments (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  strategy TEXT NOT NULL CHECK (strategy IN ('rolling','canary')),
  state TEXT NOT NULL CHECK (state IN ('DEPLOYING','PREPAUSED','PAUSED','DEPLOYED','CANCELING','CANCELED')),
  status_value TEXT NOT NULL CHECK ((status_value = 'FINALIZED') = (state IN ('DEPLOYED','CANCELED')) AND status_value IN ('ACTIVE','FINALIZED')),
  status_reason TEXT NOT NULL CHECK (status_reason IN ('DEPLOYING','PAUSED','DEPLOYED','CANCELING','CANCELED','SUPERSEDED')),
  status_since INTEGER NOT NULL, last_healthy INTEGER NOT NULL, error TEXT NOT NULL,
  droplet_guid TEXT NOT NULL, previous_droplet TEXT NOT NULL, revision_guid TEXT NOT NULL, revision_version INTEGER NOT NULL,
  options TEXT NOT NULL, canary_step INTEGER NOT NULL, original_instances INTEGER NOT NULL,
  web_process TEXT NOT NULL, new_processes TEXT NOT NULL
) STRICT;
CREATE INDEX deployments_app ON deployments(app_guid);
CREATE UNIQUE INDEX deployments_active ON deployments(app_guid) WHERE status_value = 'ACTIVE';
CREATE TABLE network_policies (
  id INTEGER PRIMARY KEY,
  source TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  destination TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  protocol TEXT NOT NULL CHECK (protocol IN ('tcp','udp')),
  first_port INTEGER NOT NULL CHECK (first_port BETWEEN 1 AND 65535),
  last_port INTEGER NOT NULL CHECK (last_port BETWEEN first_port AND 65535),
  UNIQUE (source, destination, protocol, first_port, last_port)
) STRICT;
CREATE INDEX network_policies_destination ON network_policies(destination);
CREATE TABLE space_quotas (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL, org_guid TEXT NOT NULL REFERENCES orgs(guid) ON DELETE CASCADE, limits TEXT NOT NULL,
  UNIQUE (org_guid, name)
) STRICT;
CREATE INDEX spaces_quota ON spaces(quota_guid);
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
CREATE TABLE data_instances (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  service TEXT NOT NULL, plan TEXT NOT NULL, request TEXT NOT NULL, secret BLOB NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('new','making','ready','failed','deleting')),
  fault TEXT NOT NULL
, definition BLOB NOT NULL DEFAULT x'', next BLOB NOT NULL DEFAULT x'', upgrade TEXT NOT NULL DEFAULT '' CHECK (upgrade IN ('','pulling','stopping','starting')), tls_required INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE data_bindings (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  instance_guid TEXT NOT NULL REFERENCES data_instances(guid) ON DELETE CASCADE,
  app_guid TEXT NOT NULL, request TEXT NOT NULL, password BLOB NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('making','ready','deleting'))
, tls INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX data_bindings_instance ON data_bindings(instance_guid);
CREATE TABLE routes (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  space_guid TEXT NOT NULL REFERENCES spaces(guid), domain_guid TEXT NOT NULL REFERENCES domains(guid),
  host TEXT NOT NULL COLLATE NOCASE, path TEXT NOT NULL, port INTEGER NOT NULL CHECK (port BETWEEN 0 AND 65535),
  destinations TEXT NOT NULL, options TEXT NOT NULL, shared_spaces TEXT NOT NULL,
  UNIQUE (domain_guid, host, path, port)
) STRICT;
CREATE INDEX routes_space ON routes(space_guid);
CREATE UNIQUE INDEX routes_port ON routes(port) WHERE port > 0;
CREATE TABLE bosh_deployments (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, manifest BLOB NOT NULL
, provides BLOB NOT NULL DEFAULT x'', consumes TEXT NOT NULL DEFAULT '[]', aliases BLOB NOT NULL DEFAULT x'', configs TEXT NOT NULL DEFAULT '[]') STRICT;
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
, blobs TEXT NOT NULL DEFAULT '[]', releases TEXT NOT NULL DEFAULT '[]') STRICT;
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
CREATE TABLE route_policies (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  route_guid TEXT NOT NULL REFERENCES routes(guid) ON DELETE CASCADE, source TEXT NOT NULL,
  UNIQUE (route_guid, source)
) STRICT;
CREATE TABLE login_failures (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, failed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX login_failures_name ON login_failures (name, failed_at);
CREATE TABLE oauth_clients (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL, secret_hash TEXT NOT NULL, token_salt TEXT NOT NULL,
  grant_types TEXT NOT NULL, scopes TEXT NOT NULL, authorities TEXT NOT NULL, redirect_uris TEXT NOT NULL, auto_approve TEXT NOT NULL,
  access_seconds INTEGER NOT NULL, refresh_seconds INTEGER NOT NULL
) STRICT;
CREATE TABLE revoked_tokens (jti TEXT PRIMARY KEY, ends_at INTEGER NOT NULL) STRICT;
CREATE TABLE route_apps (
  app_guid TEXT NOT NULL, route_guid TEXT NOT NULL,
  PRIMARY KEY (app_guid, route_guid)
) STRICT, WITHOUT ROWID;
CREATE INDEX route_apps_route ON route_apps(route_guid);
CREATE TRIGGER route_apps_insert AFTER INSERT ON routes BEGIN
  INSERT INTO route_apps SELECT DISTINCT value ->> 'app_guid', new.guid FROM json_each(new.destinations) WHERE value ->> 'app_guid' IS NOT NULL;
END;
CREATE TRIGGER route_apps_update AFTER UPDATE OF destinations ON routes WHEN old.destinations <> new.destinations BEGIN
  DELETE FROM route_apps WHERE route_guid = old.guid;
  INSERT INTO route_apps SELECT DISTINCT value ->> 'app_guid', new.guid FROM json_each(new.destinations) WHERE value ->> 'app_guid' IS NOT NULL;
END;
CREATE TRIGGER route_apps_delete AFTER DELETE ON routes BEGIN
  DELETE FROM route_apps WHERE route_guid = old.guid;
END;
CREATE TABLE job_parts (
  id INTEGER PRIMARY KEY, job_guid TEXT NOT NULL REFERENCES jobs(guid) ON DELETE CASCADE,
  app_guid TEXT NOT NULL, input BLOB NOT NULL
) STRICT;
CREATE INDEX job_parts_job ON job_parts(job_guid, id);
CREATE TABLE uaa_groups (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL UNIQUE COLLATE NOCASE, description TEXT NOT NULL, version INTEGER NOT NULL
) STRICT;
CREATE TABLE router_groups (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL UNIQUE, type TEXT NOT NULL CHECK (type IN ('tcp', 'http')), ports TEXT NOT NULL
) STRICT;
CREATE VIEW droplet_buildpack AS
  SELECT d.guid droplet_guid, coalesce(d.buildpacks ->> '$[#-1].name', '') name,
    (SELECT e.value ->> 'name' FROM json_each(d.buildpacks) e WHERE e.type = 'object' AND e.value ->> 'name' LIKE '%://%' ORDER BY e.key LIMIT 1) url,
    coalesce((SELECT p.guid FROM buildpacks p WHERE p.name = d.buildpacks ->> '$[#-1].name' ORDER BY p.stack = d.stack DESC LIMIT 1), '') guid
  FROM droplets d;
CREATE VIEW process_usage AS
  SELECT p.id id, p.guid process_guid, p.type process_type, p.instances, p.memory_mb, a.guid app_guid, a.name app_name, a.state,
    s.guid space_guid, s.name space_name, s.org_guid, coalesce(b.guid, '') buildpack_guid, coalesce(b.url, b.name, '') buildpack_name
  FROM processes p JOIN apps a ON a.guid = p.app_guid JOIN spaces s ON s.guid = a.space_guid LEFT JOIN droplet_buildpack b ON b.droplet_guid = a.droplet_guid;
CREATE TRIGGER usage_of_new_build AFTER INSERT ON builds WHEN NEW.state = 'STAGING' BEGIN
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, space_guid, space_name, org_guid, buildpack_name, memory_mb, previous_memory_mb)
  SELECT 'STAGING_STARTED', 'STAGING', a.guid, a.name, s.guid, s.name, s.org_guid, NEW.buildpack, NEW.memory_mb, NEW.memory_mb
    FROM apps a JOIN spaces s ON s.guid = a.space_guid WHERE a.guid = NEW.app_guid;
END;
CREATE TRIGGER usage_of_build AFTER UPDATE OF state ON builds WHEN OLD.state = 'STAGING' AND NEW.state != 'STAGING' BEGIN
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, space_guid, space_name, org_guid, buildpack_guid, buildpack_name, memory_mb, previous_memory_mb)
  SELECT e.state, 'STAGING', a.guid, a.name, s.guid, s.name, s.org_guid, coalesce(b.guid, ''), coalesce(b.name, NEW.buildpack), NEW.memory_mb, NEW.memory_mb
    FROM (SELECT 'STAGING_STOPPED' state UNION ALL SELECT 'BUILDPACK_SET' WHERE NEW.state = 'STAGED') e
    JOIN apps a ON a.guid = NEW.app_guid JOIN spaces s ON s.guid = a.space_guid LEFT JOIN droplet_buildpack b ON b.droplet_guid = NEW.droplet_guid;
END;
CREATE TABLE bbs_locks (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, value TEXT NOT NULL, type INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE TABLE uaa_nested_groups (
  id INTEGER PRIMARY KEY, group_name TEXT NOT NULL, member_name TEXT NOT NULL,
  UNIQUE (group_name, member_name)
) STRICT;
CREATE INDEX uaa_nested_groups_member ON uaa_nested_groups (member_name);
CREATE TABLE console_sessions (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, user_guid TEXT NOT NULL REFERENCES users (guid) ON DELETE CASCADE, signature TEXT NOT NULL,
  created_at INTEGER NOT NULL, seen_at INTEGER NOT NULL
) STRICT;
CREATE INDEX console_sessions_user ON console_sessions (user_guid);
CREATE INDEX packages_by_digest ON packages (digest);
CREATE TABLE domain_certificates (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE REFERENCES domains (guid) ON DELETE CASCADE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  certificate TEXT NOT NULL, key BLOB NOT NULL
) STRICT;
CREATE TABLE process_sleeps (
  id INTEGER PRIMARY KEY, process_guid TEXT NOT NULL UNIQUE REFERENCES processes (guid) ON DELETE CASCADE, app_guid TEXT NOT NULL,
  lrp_guid TEXT NOT NULL, instances INTEGER NOT NULL, state TEXT NOT NULL, since INTEGER NOT NULL
) STRICT;
CREATE INDEX process_sleeps_app ON process_sleeps (app_guid);
CREATE TABLE acme_files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, value BLOB NOT NULL, modified_at INTEGER NOT NULL
) STRICT;
CREATE TABLE data_backups (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  instance_guid TEXT NOT NULL REFERENCES data_instances(guid) ON DELETE CASCADE,
  service TEXT NOT NULL, version TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('requested','before_restore')),
  state TEXT NOT NULL CHECK (state IN ('PROCESSING','READY')),
  size INTEGER NOT NULL, digest TEXT NOT NULL, key BLOB NOT NULL
) STRICT;
CREATE INDEX data_backups_instance ON data_backups(instance_guid, created_at);
CREATE TABLE ssh_keys (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  user_guid TEXT NOT NULL REFERENCES users(guid) ON DELETE CASCADE,
  name TEXT NOT NULL, public_key TEXT NOT NULL, fingerprint TEXT NOT NULL UNIQUE, last_used_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ssh_keys_user ON ssh_keys(user_guid, created_at);
CREATE TABLE bosh_releases (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL, version TEXT NOT NULL, commit_hash TEXT NOT NULL, uncommitted INTEGER NOT NULL,
  jobs TEXT NOT NULL, packages TEXT NOT NULL,
  UNIQUE (name, version)
) STRICT;
CREATE TABLE bosh_compiled_packages (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL, fingerprint TEXT NOT NULL, stack TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL
) STRICT;
CREATE TABLE bosh_configs (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  number INTEGER NOT NULL UNIQUE, type TEXT NOT NULL, name TEXT NOT NULL, content BLOB NOT NULL, deleted INTEGER NOT NULL
) STRICT;
CREATE INDEX bosh_configs_name ON bosh_configs(type, name);
CREATE TABLE bosh_events (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  number INTEGER NOT NULL UNIQUE, parent INTEGER NOT NULL, -- 0: none
  user TEXT NOT NULL, action TEXT NOT NULL, object_type TEXT NOT NULL, object_name TEXT NOT NULL,
  task INTEGER NOT NULL, -- 0: none
  deployment TEXT NOT NULL, instance TEXT NOT NULL, error TEXT NOT NULL
) STRICT;
CREATE INDEX bosh_events_object ON bosh_events(task, object_type, object_name);
CREATE INDEX bosh_events_deployment ON bosh_events(deployment);
CREATE TABLE "bosh_tasks" (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  number INTEGER NOT NULL UNIQUE, deployment_name TEXT NOT NULL, kind TEXT NOT NULL, user TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued','processing','done','error','cancelled')),
  ordered BLOB NOT NULL, plan BLOB NOT NULL, result TEXT NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER NOT NULL
) STRICT;
CREATE TABLE "bosh_task_events" (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  task_guid TEXT NOT NULL REFERENCES "bosh_tasks"(guid) ON DELETE CASCADE,
  stage TEXT NOT NULL, subject TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('started','finished','failed')), detail TEXT NOT NULL
) STRICT;
CREATE INDEX bosh_tasks_deployment ON bosh_tasks(deployment_name);
CREATE INDEX bosh_tasks_open ON bosh_tasks(state) WHERE state IN ('queued','processing');
CREATE INDEX bosh_tasks_kind ON bosh_tasks(kind, number);
CREATE INDEX bosh_task_events_task ON bosh_task_events(task_guid);
CREATE TABLE app_jobs (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  name TEXT NOT NULL, command BLOB NOT NULL,
  memory_mb INTEGER NOT NULL, disk_mb INTEGER NOT NULL, -- 0: as other tasks
  timeout INTEGER NOT NULL, -- seconds
  state TEXT NOT NULL -- of its last run
, kind TEXT NOT NULL DEFAULT 'job' CHECK (kind IN ('job','call')), url BLOB NOT NULL DEFAULT x'', auth_header BLOB NOT NULL DEFAULT x'') STRICT;
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
CREATE TABLE alerts (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  rule TEXT NOT NULL, subject TEXT NOT NULL, name TEXT NOT NULL, severity TEXT NOT NULL, text TEXT NOT NULL, mend TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('PENDING','FIRING','RESOLVED')),
  fired_at INTEGER NOT NULL, resolved_at INTEGER NOT NULL, absent_since INTEGER NOT NULL, -- 0: not yet
  announced INTEGER NOT NULL, repeats INTEGER NOT NULL, repeat_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX alerts_open ON alerts(rule, subject) WHERE state != 'RESOLVED';
CREATE INDEX alerts_state ON alerts(state, resolved_at);
CREATE TABLE alert_targets (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL CHECK (kind IN ('webhook','mail','command')), settings BLOB NOT NULL,
  sent_at INTEGER NOT NULL, failing_since INTEGER NOT NULL, failure TEXT NOT NULL, tries INTEGER NOT NULL, try_at INTEGER NOT NULL
) STRICT;
CREATE TABLE alert_notices (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  target_guid TEXT NOT NULL REFERENCES alert_targets(guid) ON DELETE CASCADE, notice TEXT NOT NULL
) STRICT;
CREATE INDEX alert_notices_target ON alert_notices(target_guid);
CREATE TABLE alert_silences (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  rule TEXT NOT NULL, name TEXT NOT NULL, comment TEXT NOT NULL, ends_at INTEGER NOT NULL
) STRICT;
CREATE INDEX apps_sleep_after ON apps(id) WHERE instr(labels, '"cupola.dev/sleep-after"') > 0;
CREATE TABLE scaling_policies (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  app_guid TEXT NOT NULL UNIQUE REFERENCES apps(guid) ON DELETE CASCADE,
  policy TEXT NOT NULL,
  rests_to INTEGER NOT NULL, -- rules do not scale the app before that
  schedule TEXT NOT NULL -- the one that is active; '': none
) STRICT;
CREATE TABLE scaling_events (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  type INTEGER NOT NULL, status INTEGER NOT NULL, old INTEGER NOT NULL, new INTEGER NOT NULL,
  reason TEXT NOT NULL, message TEXT NOT NULL, error TEXT NOT NULL
) STRICT;
CREATE INDEX scaling_events_app ON scaling_events(app_guid, id);
CREATE INDEX apps_placement_pool ON apps(placement_pool);
CREATE TABLE scaling_instances (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  request TEXT NOT NULL,
  default_policy TEXT NOT NULL -- JSON; '': none
) STRICT;
CREATE TABLE scaling_bindings (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  instance_guid TEXT NOT NULL REFERENCES scaling_instances(guid) ON DELETE CASCADE,
  app_guid TEXT NOT NULL UNIQUE REFERENCES apps(guid) ON DELETE CASCADE,
  request TEXT NOT NULL,
  password BLOB NOT NULL -- sealed; of '': there is none
) STRICT;
CREATE INDEX scaling_bindings_instance ON scaling_bindings(instance_guid);
CREATE TABLE space_routes (
  space_guid TEXT NOT NULL PRIMARY KEY, routes INTEGER NOT NULL, ports INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER space_routes_insert AFTER INSERT ON routes BEGIN
  INSERT INTO space_routes VALUES (new.space_guid, 1, new.port > 0)
    ON CONFLICT (space_guid) DO UPDATE SET routes = routes + 1, ports = ports + excluded.ports;
END;
CREATE TRIGGER space_routes_update AFTER UPDATE OF space_guid, port ON routes WHEN old.space_guid <> new.space_guid OR (old.port > 0) <> (new.port > 0) BEGIN
  UPDATE space_routes SET routes = routes - 1, ports = ports - (old.port > 0) WHERE space_guid = old.space_guid;
  INSERT INTO space_routes VALUES (new.space_guid, 1, new.port > 0)
    ON CONFLICT (space_guid) DO UPDATE SET routes = routes + 1, ports = ports + excluded.ports;
  DELETE FROM space_routes WHERE space_guid = old.space_guid AND routes = 0;
END;
CREATE TRIGGER space_routes_delete AFTER DELETE ON routes BEGIN
  UPDATE space_routes SET routes = routes - 1, ports = ports - (old.port > 0) WHERE space_guid = old.space_guid;
  DELETE FROM space_routes WHERE space_guid = old.space_guid AND routes = 0;
END;
INSERT INTO isolation_segments (id, guid, created_at, updated_at, labels, annotations, name, orgs) VALUES (1, '933b4c58-120b-499a-b85d-4b6fc9e2903b', 0, 0, '{}', '{}', 'shared', '[]');
