-- The operator's configs for all BOSH deployments. A version is never changed; deleted ones are kept while deployments name them.
CREATE TABLE bosh_configs (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  number INTEGER NOT NULL UNIQUE, type TEXT NOT NULL, name TEXT NOT NULL, content BLOB NOT NULL, deleted INTEGER NOT NULL
) STRICT;
CREATE INDEX bosh_configs_name ON bosh_configs(type, name);

-- The numbers of the configs that a deployment was last deployed with.
ALTER TABLE bosh_deployments ADD COLUMN configs TEXT NOT NULL DEFAULT '[]';
