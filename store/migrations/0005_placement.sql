-- Which cells may run what: placement pools and isolation segments, and what
-- each process, task and build was started with.
CREATE TABLE isolation_segments (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL COLLATE NOCASE UNIQUE, orgs TEXT NOT NULL
) STRICT;

CREATE TABLE placement_pools (
  id INTEGER PRIMARY KEY, guid TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  labels TEXT NOT NULL, annotations TEXT NOT NULL,
  name TEXT NOT NULL COLLATE NOCASE UNIQUE, require TEXT NOT NULL, disallow TEXT NOT NULL,
  is_default INTEGER NOT NULL CHECK (is_default IN (0,1))
) STRICT;
CREATE UNIQUE INDEX placement_pools_default ON placement_pools(is_default) WHERE is_default = 1;

ALTER TABLE orgs ADD COLUMN isolation_segment TEXT REFERENCES isolation_segments(guid);
ALTER TABLE spaces ADD COLUMN isolation_segment TEXT REFERENCES isolation_segments(guid);
ALTER TABLE spaces ADD COLUMN placement_pool TEXT REFERENCES placement_pools(guid) ON DELETE SET NULL;
CREATE INDEX orgs_isolation_segment ON orgs(isolation_segment);
CREATE INDEX spaces_isolation_segment ON spaces(isolation_segment);
CREATE INDEX spaces_placement_pool ON spaces(placement_pool);

ALTER TABLE processes ADD COLUMN placement TEXT NOT NULL DEFAULT '{}';
ALTER TABLE tasks ADD COLUMN placement TEXT NOT NULL DEFAULT '{}';
ALTER TABLE builds ADD COLUMN placement TEXT NOT NULL DEFAULT '{}';

INSERT INTO isolation_segments (guid, created_at, updated_at, labels, annotations, name, orgs)
  VALUES ('933b4c58-120b-499a-b85d-4b6fc9e2903b', 0, 0, '{}', '{}', 'shared', '[]');
