-- The links that a deployment of BOSH's offers to others; sealed, since they have properties.
ALTER TABLE bosh_deployments ADD COLUMN provides BLOB NOT NULL DEFAULT x'';
