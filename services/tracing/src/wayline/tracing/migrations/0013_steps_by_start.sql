-- migrate:up
-- Recorded calls of one tenant's tools are read newest first, page by page.
CREATE INDEX steps_by_start ON steps (tenant, started_at, job_id, step);

-- migrate:down
DROP INDEX steps_by_start;
