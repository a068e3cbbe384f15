-- Which instance of a BOSH deployment runs for, and which process of which job it is. Its process GUID tells neither for
-- certain: groups may be called "web" and "web.1". Of the instances whose names begin that of an older row the longest is meant.
ALTER TABLE actual_lrps ADD COLUMN owner_guid TEXT NOT NULL DEFAULT '';
ALTER TABLE actual_lrps ADD COLUMN owner_part TEXT NOT NULL DEFAULT '';
CREATE TEMP TABLE owners AS
  SELECT i.guid, d.name || '.' || i.group_name || '.' || i.idx || '.' AS prefix
  FROM bosh_instances i JOIN bosh_deployments d ON d.guid = i.deployment_guid;
UPDATE actual_lrps SET owner_guid = o.guid,
  owner_part = replace(rtrim(rtrim(substr(process_guid, length(o.prefix) + 1), '0123456789abcdef'), '.'), '.', '/')
  FROM owners o
  WHERE substr(process_guid, 1, length(o.prefix)) = o.prefix
    AND NOT EXISTS (SELECT 1 FROM owners longer WHERE length(longer.prefix) > length(o.prefix) AND substr(process_guid, 1, length(longer.prefix)) = longer.prefix);
DROP TABLE owners;
