-- migrate:up
CREATE TABLE tenant_limits (
    tenant text PRIMARY KEY,
    limits jsonb NOT NULL,
    saved_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE tenant_limits IS 'How many requests and jobs a tenant, its keys and its users may make, where an operator has set it.';

ALTER TABLE api_keys ADD COLUMN limits jsonb;
COMMENT ON COLUMN api_keys.limits IS 'The same of this key. NULL: as its tenant''s keys.';

-- Written several times a second while in use: room for that on the same page.
CREATE TABLE token_buckets (
    tenant text NOT NULL,
    bucket text NOT NULL,
    full_at timestamptz NOT NULL, -- when it holds as many tokens as it can, if nobody takes any
    granted integer NOT NULL, -- how many it gave to whoever asked last
    PRIMARY KEY (tenant, bucket)
) WITH (fillfactor = 50);
COMMENT ON TABLE token_buckets IS 'How much of each rate is used up; what gateways have leased counts as used.';

ALTER TABLE tenant_limits ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenant_limits FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenant_limits USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);
ALTER TABLE token_buckets ENABLE ROW LEVEL SECURITY;
ALTER TABLE token_buckets FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON token_buckets USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);

-- migrate:down
DROP TABLE token_buckets;
ALTER TABLE api_keys DROP COLUMN limits;
DROP TABLE tenant_limits;
