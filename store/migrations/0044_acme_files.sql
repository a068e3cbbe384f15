-- What the ACME client keeps: its account, certificates and keys, under paths. Values are sealed.
CREATE TABLE acme_files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, value BLOB NOT NULL, modified_at INTEGER NOT NULL
) STRICT;
