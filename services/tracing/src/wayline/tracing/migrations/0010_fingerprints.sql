-- migrate:up
ALTER TABLE jobs ADD COLUMN fingerprint text; -- of a failed job: the same for all that failed of one cause
CREATE INDEX jobs_by_fingerprint ON jobs (tenant, fingerprint, created_at DESC) WHERE fingerprint IS NOT NULL;

-- Beside `job_row_2` and not instead of it: the version before this one still writes that.
CREATE TYPE job_row_3 AS (
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
    fingerprint text
);

-- migrate:down
DROP TYPE job_row_3;
ALTER TABLE jobs DROP COLUMN fingerprint;
