-- migrate:up
CREATE TABLE servers (
    tenant text NOT NULL,
    name text NOT NULL,
    -- With masks in place of secrets.
    config json NOT NULL,
    key_id text,
    sealed bytea,
    enabled boolean NOT NULL DEFAULT true,
    -- Another one after each change: a replica connects again when it reads a new one.
    revision uuid NOT NULL DEFAULT gen_random_uuid(),
    saved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, name),
    CHECK ((key_id IS NULL) = (sealed IS NULL))
);

ALTER TABLE servers ENABLE ROW LEVEL SECURITY;
ALTER TABLE servers FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_only ON servers
    USING (current_setting('wayline.tenant', true) IN (tenant, '*'))
    WITH CHECK (current_setting('wayline.tenant', true) IN (tenant, '*'));

-- migrate:down
DROP TABLE servers;
