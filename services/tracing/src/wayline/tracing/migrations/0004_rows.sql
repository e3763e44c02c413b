-- migrate:up

-- Rows as the service hands them over, JSON as text: an array of rows costs both sides less than an array a column.
-- Never altered, because a service that runs knows a type as it was when it first wrote: another shape is another type.

CREATE TYPE job_row AS (
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
    ended_at timestamptz
);

CREATE TYPE step_row AS (
    tenant text,
    job_id text,
    step integer,
    seq integer,
    started_at timestamptz,
    thought text,
    tool text,
    input text,
    output text,
    calls text,
    duration_ms double precision,
    status text
);

CREATE TYPE ledger_row AS (
    tenant text,
    job_id text,
    attempt_id text,
    seq integer,
    step integer,
    kind text,
    provider text,
    model text,
    tool text,
    agent text,
    user_id text,
    session_id text,
    input_tokens bigint,
    cache_read_tokens bigint,
    cache_write_5m_tokens bigint,
    cache_write_1h_tokens bigint,
    output_tokens bigint,
    reasoning_tokens bigint,
    cost_usd numeric,
    open boolean,
    settled boolean,
    at timestamptz,
    purpose text,
    saved_usd numeric,
    lower_usd numeric,
    upper_usd numeric
);

CREATE TYPE span_row AS (
    trace_id text,
    span_id text,
    start timestamptz,
    tenant text,
    parent_span_id text,
    anchor text,
    service text,
    name text,
    kind text,
    duration_ms double precision,
    status text,
    attributes text,
    links text,
    events text,
    usage text,
    cost_usd numeric,
    seq integer
);

-- migrate:down
DROP TYPE span_row, ledger_row, step_row, job_row;
