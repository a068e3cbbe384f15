-- What a process runs: the droplet that it was started with ('': the app's),
-- and how often it was restarted by itself.
ALTER TABLE processes ADD COLUMN droplet_guid TEXT NOT NULL DEFAULT '';
ALTER TABLE processes ADD COLUMN rev INTEGER NOT NULL DEFAULT 0;

DROP TABLE deployments;
CREATE TABLE deployments (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  app_guid TEXT NOT NULL REFERENCES apps(guid) ON DELETE CASCADE,
  strategy TEXT NOT NULL CHECK (strategy IN ('rolling','canary')),
  state TEXT NOT NULL CHECK (state IN ('DEPLOYING','PREPAUSED','PAUSED','DEPLOYED','CANCELING','CANCELED')),
  status_value TEXT NOT NULL CHECK ((status_value = 'FINALIZED') = (state IN ('DEPLOYED','CANCELED')) AND status_value IN ('ACTIVE','FINALIZED')),
  status_reason TEXT NOT NULL CHECK (status_reason IN ('DEPLOYING','PAUSED','DEPLOYED','CANCELING','CANCELED','SUPERSEDED')),
  status_since INTEGER NOT NULL, last_healthy INTEGER NOT NULL, error TEXT NOT NULL,
  droplet_guid TEXT NOT NULL, previous_droplet TEXT NOT NULL, revision_guid TEXT NOT NULL, revision_version INTEGER NOT NULL,
  options TEXT NOT NULL, canary_step INTEGER NOT NULL, original_instances INTEGER NOT NULL,
  web_process TEXT NOT NULL, new_processes TEXT NOT NULL
) STRICT;
CREATE INDEX deployments_app ON deployments(app_guid);
CREATE UNIQUE INDEX deployments_active ON deployments(app_guid) WHERE status_value = 'ACTIVE';
