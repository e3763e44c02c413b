-- migrate:up
CREATE TABLE resendable_requests (
    tenant text NOT NULL,
    key_id text NOT NULL, -- of the API key; empty: there was none
    digest text NOT NULL, -- of the request's address and body
    job_id text NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT now(), -- when it last came
    PRIMARY KEY (tenant, key_id, digest)
);
COMMENT ON TABLE resendable_requests IS 'Which job a request began that its client may send again, for ten minutes.';
CREATE INDEX resendable_requests_by_time ON resendable_requests (tenant, asked_at);
ALTER TABLE resendable_requests ENABLE ROW LEVEL SECURITY;
ALTER TABLE resendable_requests FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON resendable_requests USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);

-- migrate:down
DROP TABLE resendable_requests;
