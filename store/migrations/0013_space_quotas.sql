-- What one space of an org may use of the org's quota.
CREATE TABLE space_quotas (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  name TEXT NOT NULL, org_guid TEXT NOT NULL REFERENCES orgs(guid) ON DELETE CASCADE, limits TEXT NOT NULL,
  UNIQUE (org_guid, name)
) STRICT;

ALTER TABLE spaces ADD COLUMN quota_guid TEXT REFERENCES space_quotas(guid) ON DELETE SET NULL;
CREATE INDEX spaces_quota ON spaces(quota_guid);
