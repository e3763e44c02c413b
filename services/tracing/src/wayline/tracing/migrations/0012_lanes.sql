-- migrate:up
ALTER TABLE jobs ADD COLUMN lane text NOT NULL DEFAULT 'interactive';
-- What waits for an executor is a handful among all jobs that there were.
CREATE INDEX jobs_queued ON jobs (tenant, lane, created_at, job_id) WHERE status = 'queued';

-- Beside `job_row_4` and not instead of it: the version before this one still writes that.
CREATE TYPE job_row_5 AS (
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
    lane text
);

-- migrate:down
DROP TYPE job_row_5;
ALTER TABLE jobs DROP COLUMN lane;
