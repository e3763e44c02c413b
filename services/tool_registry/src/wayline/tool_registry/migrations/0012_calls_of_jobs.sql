-- migrate:up
-- The calls of a job are found without those of the others: a job can be erased.
CREATE INDEX calls_of_job ON calls (tenant, job_id);

-- migrate:down
DROP INDEX calls_of_job;
