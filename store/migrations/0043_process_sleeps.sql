-- Processes whose app sleeps: frozen or stopped, until a request wakes it. A row holds as
-- long as the process is as it was then: its LRP, and how many instances it has.
CREATE TABLE process_sleeps (
  id INTEGER PRIMARY KEY, process_guid TEXT NOT NULL UNIQUE REFERENCES processes (guid) ON DELETE CASCADE, app_guid TEXT NOT NULL,
  lrp_guid TEXT NOT NULL, instances INTEGER NOT NULL, state TEXT NOT NULL, since INTEGER NOT NULL
) STRICT;
CREATE INDEX process_sleeps_app ON process_sleeps (app_guid);
