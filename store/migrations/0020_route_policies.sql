-- A domain may let in only callers whom the policies of its routes name; its scope
-- is "any", "org" or "space" then: how far away they may be.
ALTER TABLE domains ADD COLUMN enforces_policies INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domains ADD COLUMN policies_scope TEXT NOT NULL DEFAULT '';

-- Who may call a route. source is what Cloud Controller calls it: "cf:any",
-- "cf:app:<guid>", "cf:space:<guid>", "cf:org:<guid>".
CREATE TABLE route_policies (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  route_guid TEXT NOT NULL REFERENCES routes(guid) ON DELETE CASCADE, source TEXT NOT NULL,
  UNIQUE (route_guid, source)
) STRICT;
