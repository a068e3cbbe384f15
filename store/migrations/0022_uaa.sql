-- Failed logins, by a keyed hash of the name that was tried: people type passwords there too.
CREATE TABLE login_failures (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, failed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX login_failures_name ON login_failures (name, failed_at);

-- The clients of the UAA that admins registered; guid is the client's ID.
CREATE TABLE oauth_clients (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL, secret_hash TEXT NOT NULL, token_salt TEXT NOT NULL,
  grant_types TEXT NOT NULL, scopes TEXT NOT NULL, authorities TEXT NOT NULL, redirect_uris TEXT NOT NULL, auto_approve TEXT NOT NULL,
  access_seconds INTEGER NOT NULL, refresh_seconds INTEGER NOT NULL
) STRICT;

-- Tokens that were revoked before their end.
CREATE TABLE revoked_tokens (jti TEXT PRIMARY KEY, ends_at INTEGER NOT NULL) STRICT;

-- Changes when all of a user's tokens are revoked.
ALTER TABLE users ADD COLUMN token_salt TEXT NOT NULL DEFAULT '';
