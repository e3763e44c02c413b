-- migrate:up

-- What a tenant has changed of its settings, by name; what is not there is the default.
CREATE TABLE tenant_settings (
    tenant text PRIMARY KEY,
    settings jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);

ALTER TABLE tenant_settings ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenant_settings FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenant_settings USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- The fields of `config` for which the tenant's settings come first. Null where an older version saved the agent: those
-- that have their default.
ALTER TABLE agents ADD COLUMN inherits text[];

-- migrate:down
ALTER TABLE agents DROP COLUMN inherits;
DROP TABLE tenant_settings;
