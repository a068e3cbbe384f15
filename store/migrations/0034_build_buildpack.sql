-- Usage events of a staging name the buildpack that was asked for first, until one has staged: its name, or its URL without secrets.
ALTER TABLE builds ADD COLUMN buildpack TEXT NOT NULL DEFAULT '';
DROP TRIGGER usage_of_new_build;
CREATE TRIGGER usage_of_new_build AFTER INSERT ON builds WHEN NEW.state = 'STAGING' BEGIN
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, space_guid, space_name, org_guid, buildpack_name, memory_mb, previous_memory_mb)
  SELECT 'STAGING_STARTED', 'STAGING', a.guid, a.name, s.guid, s.name, s.org_guid, NEW.buildpack, NEW.memory_mb, NEW.memory_mb
    FROM apps a JOIN spaces s ON s.guid = a.space_guid WHERE a.guid = NEW.app_guid;
END;
DROP TRIGGER usage_of_build;
CREATE TRIGGER usage_of_build AFTER UPDATE OF state ON builds WHEN OLD.state = 'STAGING' AND NEW.state != 'STAGING' BEGIN
  INSERT INTO app_usage_events (state, previous_state, app_guid, app_name, space_guid, space_name, org_guid, buildpack_guid, buildpack_name, memory_mb, previous_memory_mb)
  SELECT e.state, 'STAGING', a.guid, a.name, s.guid, s.name, s.org_guid, coalesce(b.guid, ''), coalesce(b.name, NEW.buildpack), NEW.memory_mb, NEW.memory_mb
    FROM (SELECT 'STAGING_STOPPED' state UNION ALL SELECT 'BUILDPACK_SET' WHERE NEW.state = 'STAGED') e
    JOIN apps a ON a.guid = NEW.app_guid JOIN spaces s ON s.guid = a.space_guid LEFT JOIN droplet_buildpack b ON b.droplet_guid = NEW.droplet_guid;
END;
