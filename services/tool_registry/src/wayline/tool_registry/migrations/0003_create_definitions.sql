-- migrate:up
ALTER TABLE servers
    -- When what the server offered first was approved with it; NULL: it was not reached yet.
    ADD COLUMN pinned_at timestamptz,
    -- Another one after each approval: a replica compares again when it reads a new one.
    ADD COLUMN pins uuid NOT NULL DEFAULT gen_random_uuid();

CREATE TABLE definitions (
    tenant text NOT NULL,
    server text NOT NULL,
    -- As its server calls it; empty: the server's instructions.
    tool text NOT NULL,
    -- Of the raw object; the texts are without the server's secrets.
    approved_sha256 text,
    approved text,
    approved_at timestamptz,
    waiting_sha256 text,
    waiting text,
    waiting_since timestamptz,
    PRIMARY KEY (tenant, server, tool),
    FOREIGN KEY (tenant, server) REFERENCES servers (tenant, name) ON DELETE CASCADE,
    CHECK (approved_sha256 IS NOT NULL OR waiting_sha256 IS NOT NULL),
    CHECK ((approved_sha256 IS NULL) = (approved IS NULL)),
    CHECK ((waiting_sha256 IS NULL) = (waiting IS NULL))
);

ALTER TABLE definitions ENABLE ROW LEVEL SECURITY;
ALTER TABLE definitions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_only ON definitions
    USING (current_setting('wayline.tenant', true) IN (tenant, '*'))
    WITH CHECK (current_setting('wayline.tenant', true) IN (tenant, '*'));

-- migrate:down
DROP TABLE definitions;
ALTER TABLE servers DROP COLUMN pinned_at, DROP COLUMN pins;
