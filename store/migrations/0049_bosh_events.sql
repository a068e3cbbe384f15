-- What was done to BOSH deployments, by whom, as BOSH's director records it: the start of an action, and its end with the start as its parent.
CREATE TABLE bosh_events (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  number INTEGER NOT NULL UNIQUE, parent INTEGER NOT NULL, -- 0: none
  user TEXT NOT NULL, action TEXT NOT NULL, object_type TEXT NOT NULL, object_name TEXT NOT NULL,
  task INTEGER NOT NULL, -- 0: none
  deployment TEXT NOT NULL, instance TEXT NOT NULL, error TEXT NOT NULL
) STRICT;
CREATE INDEX bosh_events_object ON bosh_events(task, object_type, object_name);
CREATE INDEX bosh_events_deployment ON bosh_events(deployment);

-- Orphaned disks are deleted five days after this, not at once.
UPDATE bosh_disks SET orphaned_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE orphaned_at > 0;
