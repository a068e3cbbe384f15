-- The autoscaler as a service: its instances with their default policies, and what is bound to them.
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
