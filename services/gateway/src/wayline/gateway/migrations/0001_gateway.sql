-- migrate:up
CREATE TABLE submissions (
    tenant text NOT NULL,
    job_id text NOT NULL,
    idempotency_key text,
    content_hash text NOT NULL,
    agent text,
    session_id text,
    user_id text,
    created_at timestamptz NOT NULL DEFAULT now(),
    accepted_at timestamptz,
    PRIMARY KEY (tenant, job_id)
);
COMMENT ON TABLE submissions IS 'Jobs sent by HTTP. accepted_at: the bus has stored it; until then nobody was told so.';
CREATE UNIQUE INDEX submissions_by_key ON submissions (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
ALTER TABLE submissions ENABLE ROW LEVEL SECURITY;
ALTER TABLE submissions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON submissions USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);

CREATE TABLE api_keys (
    id text PRIMARY KEY,
    hash bytea NOT NULL,
    tenant text NOT NULL,
    name text NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz
);
COMMENT ON COLUMN api_keys.hash IS 'SHA-256 of the whole key; the key itself is shown once and kept nowhere.';
ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON api_keys USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);

-- migrate:down
DROP TABLE api_keys;
DROP TABLE submissions;
