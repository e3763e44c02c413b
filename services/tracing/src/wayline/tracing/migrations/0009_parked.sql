-- migrate:up
-- What waits is a handful among all jobs that there were.
CREATE INDEX jobs_parked ON jobs (tenant, created_at DESC, job_id DESC) WHERE status = 'parked';

-- migrate:down
DROP INDEX jobs_parked;
