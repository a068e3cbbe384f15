-- What an instance is among those of which one serves at a time.
ALTER TABLE actual_lrps ADD COLUMN role TEXT NOT NULL DEFAULT '' CHECK (role IN ('', 'active', 'passive'));
