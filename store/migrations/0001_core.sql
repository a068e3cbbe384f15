-- Times are microseconds since 1970, 0 for never. Documents are JSON text.
-- A column that is BLOB holds sealed JSON.

CREATE TABLE org_quotas (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL UNIQUE, limits TEXT NOT NULL
) STRICT;

CREATE TABLE orgs (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL UNIQUE COLLATE NOCASE, suspended INTEGER NOT NULL,
  quota_guid TEXT REFERENCES org_quotas(guid)
) STRICT;
CREATE INDEX orgs_quota ON orgs(quota_guid);

CREATE TABLE spaces (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL COLLATE NOCASE, org_guid TEXT NOT NULL REFERENCES orgs(guid), allow_ssh INTEGER NOT NULL,
  UNIQUE (org_guid, name)
) STRICT;

CREATE TABLE users (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  username TEXT NOT NULL COLLATE NOCASE, origin TEXT NOT NULL, password_hash TEXT NOT NULL,
  given_name TEXT NOT NULL, family_name TEXT NOT NULL, email TEXT NOT NULL, scopes TEXT NOT NULL,
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
) STRICT;
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
  ssh_enabled INTEGER NOT NULL, revisions_on INTEGER NOT NULL, rev INTEGER NOT NULL, current_revision TEXT,
  UNIQUE (space_guid, name)
) STRICT;

CREATE TABLE processes (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  type TEXT NOT NULL, command TEXT NOT NULL, instances INTEGER NOT NULL, memory_mb INTEGER NOT NULL, disk_mb INTEGER NOT NULL,
  log_rate_limit INTEGER NOT NULL, health_check TEXT NOT NULL, readiness_check TEXT NOT NULL,
  revision_guid TEXT NOT NULL, user TEXT NOT NULL, sidecars TEXT NOT NULL
) STRICT;
CREATE INDEX processes_app ON processes(app_guid);

CREATE TABLE packages (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  type TEXT NOT NULL CHECK (type IN ('bits','docker')),
  state TEXT NOT NULL CHECK (state IN ('AWAITING_UPLOAD','PROCESSING_UPLOAD','READY','FAILED','COPYING','EXPIRED')),
  error TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL, image TEXT NOT NULL
) STRICT;
CREATE INDEX packages_app ON packages(app_guid);

CREATE TABLE builds (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  package_guid TEXT NOT NULL, droplet_guid TEXT,
  state TEXT NOT NULL CHECK (state IN ('STAGING','STAGED','FAILED')), error TEXT NOT NULL,
  lifecycle TEXT NOT NULL, memory_mb INTEGER NOT NULL, disk_mb INTEGER NOT NULL, log_rate_limit INTEGER NOT NULL,
  created_by TEXT NOT NULL, env BLOB NOT NULL
) STRICT;
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

CREATE TABLE routes (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  space_guid TEXT NOT NULL REFERENCES spaces(guid), domain_guid TEXT NOT NULL REFERENCES domains(guid),
  host TEXT NOT NULL COLLATE NOCASE, path TEXT NOT NULL, destinations TEXT NOT NULL, options TEXT NOT NULL,
  UNIQUE (domain_guid, host, path)
) STRICT;
CREATE INDEX routes_space ON routes(space_guid);

CREATE TABLE tasks (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE, droplet_guid TEXT NOT NULL,
  sequence_id INTEGER NOT NULL, name TEXT NOT NULL, command BLOB NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('PENDING','RUNNING','SUCCEEDED','CANCELING','FAILED')),
  memory_mb INTEGER NOT NULL, disk_mb INTEGER NOT NULL, log_rate_limit INTEGER NOT NULL, user TEXT NOT NULL,
  failure_reason TEXT NOT NULL, env BLOB NOT NULL,
  UNIQUE (app_guid, sequence_id)
) STRICT;

CREATE TABLE revisions (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  version INTEGER NOT NULL, droplet_guid TEXT NOT NULL, description TEXT NOT NULL, env BLOB NOT NULL, commands TEXT NOT NULL, sidecars TEXT NOT NULL,
  UNIQUE (app_guid, version)
) STRICT;

CREATE TABLE deployments (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  strategy TEXT NOT NULL, status_value TEXT NOT NULL CHECK (status_value IN ('ACTIVE','FINALIZED')), status_reason TEXT NOT NULL, status_since INTEGER NOT NULL,
  droplet_guid TEXT NOT NULL, previous_droplet TEXT NOT NULL, revision_guid TEXT NOT NULL, revision_version INTEGER NOT NULL,
  max_in_flight INTEGER NOT NULL, new_processes TEXT NOT NULL
) STRICT;
CREATE INDEX deployments_app ON deployments(app_guid);

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
) STRICT;

CREATE TABLE security_groups (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL UNIQUE, rules TEXT NOT NULL, global_running INTEGER NOT NULL, global_staging INTEGER NOT NULL,
  running_spaces TEXT NOT NULL, staging_spaces TEXT NOT NULL
) STRICT;

CREATE TABLE env_groups (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE CHECK (name IN ('running','staging')), vars BLOB NOT NULL
) STRICT;

-- What is set once and kept: the token signing key, the guid of this machine.
CREATE TABLE settings (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, value BLOB NOT NULL
) STRICT;

-- Files of uploaded packages, by the SHA-1 that a resource match names them by.
CREATE TABLE resources (
  sha1 TEXT PRIMARY KEY, size INTEGER NOT NULL, digest TEXT NOT NULL, used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What the last staging of an app on a stack left for the next one.
CREATE TABLE build_caches (
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE, stack TEXT NOT NULL, digest TEXT NOT NULL,
  PRIMARY KEY (app_guid, stack)
) STRICT, WITHOUT ROWID;

-- The data plane. One row an instance: the index is what makes it one of its kind.
CREATE TABLE actual_lrps (
  id INTEGER PRIMARY KEY, process_guid TEXT NOT NULL, idx INTEGER NOT NULL, domain TEXT NOT NULL,
  instance_guid TEXT NOT NULL, cell_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('UNCLAIMED','CLAIMED','RUNNING','CRASHED')),
  crash_count INTEGER NOT NULL, crash_reason TEXT NOT NULL, placement_error TEXT NOT NULL, since INTEGER NOT NULL,
  address TEXT NOT NULL, ports TEXT NOT NULL, ready INTEGER NOT NULL, stopping INTEGER NOT NULL,
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
