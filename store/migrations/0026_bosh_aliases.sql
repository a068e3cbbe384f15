-- The names in DNS that a deployment of BOSH's gives to instances; sealed like all that is made of its manifest.
ALTER TABLE bosh_deployments ADD COLUMN aliases BLOB NOT NULL DEFAULT x'';
