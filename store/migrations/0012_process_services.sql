-- The service bindings that a process was started with, sealed: x'' for those
-- that its app has now.
ALTER TABLE processes ADD COLUMN services BLOB NOT NULL DEFAULT x'';
