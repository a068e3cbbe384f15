-- What clients of Diego's BBS API asked for. The messages are as they came, sealed: environments hold secrets.
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

-- Diego's modification tag of an ActualLRP.
ALTER TABLE actual_lrps ADD COLUMN epoch TEXT NOT NULL DEFAULT '';
ALTER TABLE actual_lrps ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
