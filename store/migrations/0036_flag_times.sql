-- When a feature flag and a group of environment variables were last changed; 0 for those of before.
ALTER TABLE feature_flags ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE env_groups ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
