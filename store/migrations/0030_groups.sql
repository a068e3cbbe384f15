-- Groups of the UAA that an admin made. Who is a member is in users.scopes, by name.
CREATE TABLE uaa_groups (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL UNIQUE COLLATE NOCASE, description TEXT NOT NULL, version INTEGER NOT NULL
) STRICT;
