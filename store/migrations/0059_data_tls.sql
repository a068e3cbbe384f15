-- TLS of the built-in service broker's instances: whether connections without it are refused, and
-- whether a binding's credentials say how to use it. Containers that an earlier version started have none.

ALTER TABLE data_instances ADD COLUMN tls_required INTEGER NOT NULL DEFAULT 0;
ALTER TABLE data_bindings ADD COLUMN tls INTEGER NOT NULL DEFAULT 0;
