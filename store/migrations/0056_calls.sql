-- Jobs of apps that make an HTTP request instead of running a task: the scheduler's calls.
ALTER TABLE app_jobs ADD COLUMN kind TEXT NOT NULL DEFAULT 'job' CHECK (kind IN ('job','call'));
ALTER TABLE app_jobs ADD COLUMN url BLOB NOT NULL DEFAULT x'';
ALTER TABLE app_jobs ADD COLUMN auth_header BLOB NOT NULL DEFAULT x'';
