-- A file that was uploaded is a file of its package's zip rather than also a blob. entry is
-- its name there; '' if the blob is the file, as earlier versions kept it.
ALTER TABLE resources ADD COLUMN entry TEXT NOT NULL DEFAULT '';
CREATE INDEX packages_by_digest ON packages (digest);
