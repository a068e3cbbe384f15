-- The locks and presences of Locket, which clients of the BBS API claim.
CREATE TABLE bbs_locks (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, value TEXT NOT NULL, type INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
