-- What the registry of a package's image asks for, sealed.
ALTER TABLE packages ADD COLUMN credential BLOB NOT NULL DEFAULT x'';
