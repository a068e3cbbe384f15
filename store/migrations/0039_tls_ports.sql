-- Whether an instance has TLS ports: one that an earlier version started has none.
ALTER TABLE actual_lrps ADD COLUMN tls_ports INTEGER NOT NULL DEFAULT 0 CHECK (tls_ports IN (0, 1));
