-- migrate:up
CREATE INDEX jobs_decided ON jobs (tenant, (beyond ->> 'decided_at')) WHERE beyond ->> 'decided_at' IS NOT NULL;

-- migrate:down
DROP INDEX jobs_decided;
