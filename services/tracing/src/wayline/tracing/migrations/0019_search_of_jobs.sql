-- migrate:up
ALTER TABLE jobs ADD COLUMN tags text[], ADD COLUMN words tsvector;
COMMENT ON COLUMN jobs.words IS 'What it is found by; NULL while it has not ended, and of jobs that were stored before this was.';

-- Beside `job_row_6` and not instead of it: the version before this one still writes that.
CREATE TYPE job_row_7 AS (
    tenant text,
    job_id text,
    seq integer,
    trace_id text,
    status text,
    agent text,
    agent_version integer,
    session_id text,
    user_id text,
    provider text,
    model text,
    tier text,
    route_reason text,
    estimated_cost_usd numeric,
    steps integer,
    usage text,
    tokens bigint,
    cost_usd numeric,
    costs text,
    answer text,
    partial boolean,
    reason text,
    citations text,
    error_code text,
    error_message text,
    waiting_for text,
    created_at timestamptz,
    ended_at timestamptz,
    input text,
    fingerprint text,
    schedule text,
    lane text,
    beyond text,
    tags text[],
    words text[]
);

CREATE INDEX jobs_by_words ON jobs USING gin (words) WHERE words IS NOT NULL;
CREATE INDEX jobs_without_words ON jobs (tenant, created_at DESC, job_id DESC) WHERE words IS NULL;
CREATE INDEX jobs_dearest ON jobs (tenant, (coalesce(cost_usd, -1)) DESC, created_at DESC, job_id DESC);
CREATE INDEX jobs_slowest ON jobs (tenant, (extract(epoch FROM ended_at - created_at)) DESC, created_at DESC, job_id DESC)
    WHERE ended_at IS NOT NULL;

-- migrate:down
DROP INDEX jobs_slowest, jobs_dearest, jobs_without_words, jobs_by_words;
DROP TYPE job_row_7;
ALTER TABLE jobs DROP COLUMN tags, DROP COLUMN words;
