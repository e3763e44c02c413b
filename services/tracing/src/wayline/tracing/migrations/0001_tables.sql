-- migrate:up

-- Every table row carries the job-local number (`seq`) of the last event it was made from: a repeat or an older picture
-- of the same row changes nothing, whoever writes it and in whatever order.

CREATE TABLE jobs (
    tenant text NOT NULL,
    job_id text NOT NULL,
    seq integer NOT NULL,
    trace_id text NOT NULL,
    status text NOT NULL,
    agent text NOT NULL,
    agent_version integer,
    session_id text,
    user_id text,
    provider text,
    model text,
    tier text,
    route_reason text,
    estimated_cost_usd numeric,
    steps integer NOT NULL,
    usage jsonb NOT NULL,
    tokens bigint NOT NULL,
    cost_usd numeric, -- null: a call's price is unknown
    answer text,
    partial boolean NOT NULL,
    citations jsonb NOT NULL,
    error_code text,
    error_message text,
    waiting_for jsonb,
    created_at timestamptz NOT NULL,
    ended_at timestamptz,
    PRIMARY KEY (tenant, job_id)
) WITH (fillfactor = 80);
CREATE INDEX jobs_newest ON jobs (tenant, created_at DESC, job_id DESC);
CREATE INDEX jobs_trace ON jobs (trace_id);

CREATE TABLE steps (
    tenant text NOT NULL,
    job_id text NOT NULL,
    step integer NOT NULL,
    seq integer NOT NULL,
    started_at timestamptz NOT NULL,
    thought text NOT NULL,
    tool text,
    input jsonb,
    output text,
    calls jsonb NOT NULL,
    duration_ms double precision,
    status text NOT NULL CHECK (status IN ('running', 'success', 'failed', 'skipped')),
    PRIMARY KEY (tenant, job_id, step)
) WITH (fillfactor = 80);

CREATE TABLE ledger (
    tenant text NOT NULL,
    job_id text NOT NULL,
    attempt_id text NOT NULL,
    seq integer NOT NULL,
    step integer NOT NULL,
    kind text NOT NULL CHECK (kind IN ('model', 'tool')),
    provider text,
    model text,
    tool text,
    agent text NOT NULL,
    user_id text,
    session_id text,
    input_tokens bigint NOT NULL,
    cache_read_tokens bigint NOT NULL,
    cache_write_5m_tokens bigint NOT NULL,
    cache_write_1h_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    cost_usd numeric, -- null: unknown
    open boolean NOT NULL, -- the call is under way: no total counts it yet
    settled boolean NOT NULL, -- the final usage arrived
    at timestamptz NOT NULL,
    PRIMARY KEY (tenant, job_id, attempt_id)
) WITH (fillfactor = 80);
CREATE INDEX ledger_at ON ledger USING brin (at);

-- The start of a span made from the log never changes, so the open span and the closed one are the same row.
-- `seq` is 0 for a leaf that a service exported, at least 1 for a span made from the log.
CREATE TABLE spans (
    trace_id text NOT NULL,
    span_id text NOT NULL,
    start timestamptz NOT NULL,
    tenant text NOT NULL, -- '-': nobody's in particular
    parent_span_id text,
    anchor text,
    service text NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    duration_ms double precision,
    status text NOT NULL,
    attributes jsonb NOT NULL,
    links jsonb,
    events jsonb,
    usage jsonb,
    cost_usd numeric,
    seq integer NOT NULL,
    PRIMARY KEY (trace_id, span_id, start)
) PARTITION BY RANGE (start);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['jobs', 'steps', 'ledger', 'spans'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        -- The sub-select asks for the tenant once a statement instead of once a row.
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING (
                tenant = (SELECT current_setting(''wayline.tenant'', true))
                OR (SELECT current_setting(''wayline.tenant'', true)) = ''*'')',
            name
        );
    END LOOP;
END
$$;

-- Makes the partitions from `days` ago until the day after tomorrow and drops the older ones; returns the first and the
-- last day that spans can be stored for. It runs as the schema's owner, because a service may only write rows.
CREATE FUNCTION keep_spans(days integer, OUT first_day date, OUT last_day date)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tracing, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    day date;
    name text;
BEGIN
    -- One replica at a time.
    PERFORM pg_advisory_xact_lock(hashtext('tracing.keep_spans'));
    first_day := today - greatest(days, 0);
    last_day := today + 2;
    FOR day IN SELECT generate_series(first_day, last_day, interval '1 day')::date LOOP
        name := 'spans_' || to_char(day, 'YYYYMMDD');
        IF to_regclass(name) IS NULL THEN
            EXECUTE format(
                'CREATE TABLE %I PARTITION OF spans FOR VALUES FROM (%L) TO (%L) WITH (fillfactor = 80)',
                name, day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00'
            );
            EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
            EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
            EXECUTE format(
                'CREATE POLICY tenant ON %I USING (
                    tenant = (SELECT current_setting(''wayline.tenant'', true))
                    OR (SELECT current_setting(''wayline.tenant'', true)) = ''*'')',
                name
            );
        END IF;
    END LOOP;
    FOR name IN
        SELECT child.relname
        FROM pg_inherits
        JOIN pg_class AS child ON child.oid = inhrelid
        WHERE inhparent = 'spans'::regclass AND child.relname < 'spans_' || to_char(first_day, 'YYYYMMDD')
    LOOP
        EXECUTE format('DROP TABLE %I', name);
    END LOOP;
END
$$;

-- migrate:down
DROP FUNCTION keep_spans;
DROP TABLE spans, ledger, steps, jobs;
