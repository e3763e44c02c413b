-- migrate:up
-- A list of one session's jobs, or of one user's, is read without those of the others.
CREATE INDEX jobs_of_session ON jobs (tenant, session_id, created_at DESC, job_id DESC) WHERE session_id IS NOT NULL;
CREATE INDEX jobs_of_user ON jobs (tenant, user_id, created_at DESC, job_id DESC) WHERE user_id IS NOT NULL;

-- migrate:down
DROP INDEX jobs_of_user;
DROP INDEX jobs_of_session;
