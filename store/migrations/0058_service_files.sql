-- Service instances of a file of the operator's keep what the file said, sealed, since it may have a password.
ALTER TABLE data_instances ADD COLUMN definition BLOB NOT NULL DEFAULT x'';
ALTER TABLE data_instances ADD COLUMN next BLOB NOT NULL DEFAULT x'';
ALTER TABLE data_instances ADD COLUMN upgrade TEXT NOT NULL DEFAULT '' CHECK (upgrade IN ('','pulling','stopping','starting'));
