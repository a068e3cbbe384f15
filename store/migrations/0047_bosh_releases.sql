-- Releases of BOSH's that were uploaded, and the packages of them that were compiled. Their archives are blobs.

CREATE TABLE bosh_releases (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL, version TEXT NOT NULL, commit_hash TEXT NOT NULL, uncommitted INTEGER NOT NULL,
  jobs TEXT NOT NULL, packages TEXT NOT NULL,
  UNIQUE (name, version)
) STRICT;

CREATE TABLE bosh_compiled_packages (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL, fingerprint TEXT NOT NULL, stack TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL
) STRICT;

-- What the containers of a spec have mounted, and the releases that it is from: name/version.
ALTER TABLE bosh_specs ADD COLUMN blobs TEXT NOT NULL DEFAULT '[]';
ALTER TABLE bosh_specs ADD COLUMN releases TEXT NOT NULL DEFAULT '[]';
