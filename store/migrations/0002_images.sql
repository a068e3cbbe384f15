-- Credentials of image registries, sealed. A build has those it was asked for
-- with, since the app's may change meanwhile.
ALTER TABLE apps ADD COLUMN credentials BLOB NOT NULL DEFAULT x'';
ALTER TABLE builds ADD COLUMN credentials BLOB NOT NULL DEFAULT x'';
