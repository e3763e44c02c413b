-- migrate:up
ALTER TABLE ledger ADD COLUMN cache_break text;
COMMENT ON COLUMN ledger.cache_break IS 'Why the prompt of this call did not continue the one before it. NULL: it did, or it was stored before this was.';

-- Beside `ledger_row` and not instead of it: the version before this one still writes that.
CREATE TYPE ledger_row_2 AS (
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
    upper_usd numeric,
    cache_break text
);

-- migrate:down
DROP TYPE ledger_row_2;
ALTER TABLE ledger DROP COLUMN cache_break;
