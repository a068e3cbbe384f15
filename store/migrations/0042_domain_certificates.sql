-- Certificates that were given for domains; each has the GUID of its domain. The key is sealed.
CREATE TABLE domain_certificates (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE REFERENCES domains (guid) ON DELETE CASCADE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  certificate TEXT NOT NULL, key BLOB NOT NULL
) STRICT;
