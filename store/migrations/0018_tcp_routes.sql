-- A route in a domain of a router group has a port in place of host and path;
-- 0 for all others. A port belongs to one route of the machine.
PRAGMA defer_foreign_keys = ON;
CREATE TEMP TABLE routes_before AS SELECT * FROM routes;
DROP TABLE routes;
CREATE TABLE routes (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  space_guid TEXT NOT NULL REFERENCES spaces(guid), domain_guid TEXT NOT NULL REFERENCES domains(guid),
  host TEXT NOT NULL COLLATE NOCASE, path TEXT NOT NULL, port INTEGER NOT NULL CHECK (port BETWEEN 0 AND 65535),
  destinations TEXT NOT NULL, options TEXT NOT NULL, shared_spaces TEXT NOT NULL,
  UNIQUE (domain_guid, host, path, port)
) STRICT;
INSERT INTO routes (id, guid, created_at, updated_at, labels, annotations, space_guid, domain_guid, host, path, port, destinations, options, shared_spaces)
  SELECT id, guid, created_at, updated_at, labels, annotations, space_guid, domain_guid, host, path, 0, destinations, options, shared_spaces FROM routes_before;
DROP TABLE routes_before;
CREATE INDEX routes_space ON routes(space_guid);
CREATE UNIQUE INDEX routes_port ON routes(port) WHERE port > 0;

-- The router group that gives the ports of routes in a domain; '' for none.
ALTER TABLE domains ADD COLUMN router_group_guid TEXT NOT NULL DEFAULT '';
