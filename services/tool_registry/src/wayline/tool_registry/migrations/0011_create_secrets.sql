-- migrate:up
-- Values that servers of the tenant refer to by name.
CREATE TABLE secrets (
    tenant text NOT NULL,
    name text NOT NULL,
    key_id text NOT NULL,
    sealed bytea NOT NULL,
    saved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, name)
);

ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
ALTER TABLE secrets FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_only ON secrets
    USING (current_setting('wayline.tenant', true) IN (tenant, '*'))
    WITH CHECK (current_setting('wayline.tenant', true) IN (tenant, '*'));

-- Those that a server refers to: it is connected anew when one of them changes.
ALTER TABLE servers ADD COLUMN secret_names text[] NOT NULL DEFAULT '{}';

-- migrate:down
ALTER TABLE servers DROP COLUMN secret_names;
DROP TABLE secrets;
