-- The names of the deployments of BOSH's whose links a deployment uses, JSON.
ALTER TABLE bosh_deployments ADD COLUMN consumes TEXT NOT NULL DEFAULT '[]';
