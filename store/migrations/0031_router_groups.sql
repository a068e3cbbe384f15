-- Router groups that an admin made. The machine's own, default-tcp, has no row.
CREATE TABLE router_groups (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL UNIQUE, type TEXT NOT NULL CHECK (type IN ('tcp', 'http')), ports TEXT NOT NULL
) STRICT;
