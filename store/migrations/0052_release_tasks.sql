-- A task that runs the release command of an app is of a build, which is STAGED once it has succeeded.
ALTER TABLE tasks ADD COLUMN build_guid TEXT NOT NULL DEFAULT ''; -- '': of none
