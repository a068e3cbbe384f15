-- The sessions of the web console, by the hash of their secret. They outlive the
-- daemon, and end with their user.
CREATE TABLE console_sessions (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, user_guid TEXT NOT NULL REFERENCES users (guid) ON DELETE CASCADE, signature TEXT NOT NULL,
  created_at INTEGER NOT NULL, seen_at INTEGER NOT NULL
) STRICT;
CREATE INDEX console_sessions_user ON console_sessions (user_guid);
