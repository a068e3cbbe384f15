-- How apps scale by themselves: a policy of each, and the history of what it did.
CREATE TABLE scaling_policies (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  app_guid TEXT NOT NULL UNIQUE REFERENCES apps(guid) ON DELETE CASCADE,
  policy TEXT NOT NULL,
  rests_to INTEGER NOT NULL, -- rules do not scale the app before that
  schedule TEXT NOT NULL -- the one that is active; '': none
) STRICT;
CREATE TABLE scaling_events (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  type INTEGER NOT NULL, status INTEGER NOT NULL, old INTEGER NOT NULL, new INTEGER NOT NULL,
  reason TEXT NOT NULL, message TEXT NOT NULL, error TEXT NOT NULL
) STRICT;
CREATE INDEX scaling_events_app ON scaling_events(app_guid, id);
