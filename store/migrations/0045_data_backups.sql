-- Backups of what the built-in service broker has. A backup's file is a blob, sealed with its key.

CREATE TABLE data_backups (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  instance_guid TEXT NOT NULL REFERENCES data_instances(guid) ON DELETE CASCADE,
  service TEXT NOT NULL, version TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('requested','before_restore')),
  state TEXT NOT NULL CHECK (state IN ('PROCESSING','READY')),
  size INTEGER NOT NULL, digest TEXT NOT NULL, key BLOB NOT NULL
) STRICT;
CREATE INDEX data_backups_instance ON data_backups(instance_guid, created_at);
