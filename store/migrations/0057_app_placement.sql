-- An app may have a placement pool of its own, which holds instead of its space's.
ALTER TABLE apps ADD COLUMN placement_pool TEXT REFERENCES placement_pools(guid) ON DELETE SET NULL;
CREATE INDEX apps_placement_pool ON apps(placement_pool);
