-- Whether a binding of the plan may take over from another.
ALTER TABLE service_plans ADD COLUMN binding_rotatable INTEGER NOT NULL DEFAULT 0;
