-- migrate:up transaction:false

CREATE INDEX CONCURRENTLY memory_summaries_due ON memory_summaries (look_at) WHERE wanted_at IS NOT NULL;
-- A session that planned while the table was empty would read by it all who wait for days.
DROP INDEX CONCURRENTLY IF EXISTS memory_summaries_wanted;

-- migrate:down transaction:false

CREATE INDEX CONCURRENTLY memory_summaries_wanted ON memory_summaries (wanted_at) WHERE wanted_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS memory_summaries_due;
