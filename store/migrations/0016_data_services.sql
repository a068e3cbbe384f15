-- What the built-in service broker has: instances, and who may use them.

CREATE TABLE data_instances (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  service TEXT NOT NULL, plan TEXT NOT NULL, request TEXT NOT NULL, secret BLOB NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('new','making','ready','failed','deleting')),
  fault TEXT NOT NULL
) STRICT;

CREATE TABLE data_bindings (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  instance_guid TEXT NOT NULL REFERENCES data_instances(guid) ON DELETE CASCADE,
  app_guid TEXT NOT NULL, request TEXT NOT NULL, password BLOB NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('making','ready','deleting'))
) STRICT;
CREATE INDEX data_bindings_instance ON data_bindings(instance_guid);
