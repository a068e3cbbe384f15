-- The further spaces whose apps a route may lead to: guids, as JSON.
ALTER TABLE routes ADD COLUMN shared_spaces TEXT NOT NULL DEFAULT '[]';
