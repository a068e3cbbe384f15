-- What a job has left to do, in order. Each part is done and deleted in one transaction. The input names secrets, so it is sealed.
CREATE TABLE job_parts (
  id INTEGER PRIMARY KEY, job_guid TEXT NOT NULL REFERENCES jobs(guid) ON DELETE CASCADE,
  app_guid TEXT NOT NULL, input BLOB NOT NULL
) STRICT;
CREATE INDEX job_parts_job ON job_parts(job_guid, id);
