-- migrate:up
-- Jobs are counted by status, agent and model from the index alone, in the order in which lists are read. It keeps no
-- update from staying on its page: an index of parked jobs has the status, too.
CREATE INDEX jobs_counted ON jobs (tenant, created_at DESC, job_id DESC) INCLUDE (status, agent, provider, model);
DROP INDEX jobs_newest;
-- Of a page that was not vacuumed the row is looked at all the same.
ALTER TABLE jobs SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);

-- migrate:down
ALTER TABLE jobs RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor);
CREATE INDEX jobs_newest ON jobs (tenant, created_at DESC, job_id DESC);
DROP INDEX jobs_counted;
