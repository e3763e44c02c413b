-- migrate:up
CREATE TABLE calls (
    tenant text NOT NULL,
    key text NOT NULL,
    job_id text NOT NULL,
    tool text NOT NULL,
    effect text NOT NULL,
    state text NOT NULL CHECK (state IN ('started', 'finished', 'unknown')),
    attempt integer NOT NULL,
    owner text NOT NULL,
    lease_until timestamptz NOT NULL,
    -- json, not jsonb: a tool may answer a NUL character, and jsonb cannot hold one.
    result json,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz,
    PRIMARY KEY (tenant, key),
    CHECK ((state = 'finished') = (result IS NOT NULL))
);

CREATE INDEX calls_by_end ON calls (ended_at);

ALTER TABLE calls ENABLE ROW LEVEL SECURITY;
ALTER TABLE calls FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_only ON calls
    USING (current_setting('wayline.tenant', true) IN (tenant, '*'))
    WITH CHECK (current_setting('wayline.tenant', true) IN (tenant, '*'));

-- migrate:down
DROP TABLE calls;
