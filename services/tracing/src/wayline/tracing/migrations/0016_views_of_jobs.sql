-- migrate:up
ALTER TABLE jobs ADD COLUMN beyond jsonb;
COMMENT ON COLUMN jobs.beyond IS 'What a job''s view shows and no other column holds. NULL: written before this was.';

-- Beside `job_row_5` and not instead of it: the version before this one still writes that.
CREATE TYPE job_row_6 AS (
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
    beyond text
);

-- migrate:down
DROP TYPE job_row_6;
ALTER TABLE jobs DROP COLUMN beyond;
