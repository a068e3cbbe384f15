-- Public keys by which users push over SSH. A key belongs to one user: it says who connects.
CREATE TABLE ssh_keys (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  user_guid TEXT NOT NULL REFERENCES users(guid) ON DELETE CASCADE,
  name TEXT NOT NULL, public_key TEXT NOT NULL, fingerprint TEXT NOT NULL UNIQUE, last_used_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ssh_keys_user ON ssh_keys(user_guid, created_at);
