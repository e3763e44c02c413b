-- migrate:up
CREATE TABLE prompts (
    tenant text NOT NULL,
    name text NOT NULL,
    prompt jsonb NOT NULL,
    saved_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, name)
);
COMMENT ON TABLE prompts IS 'Templates that users of MCP clients choose by name.';
ALTER TABLE prompts ENABLE ROW LEVEL SECURITY;
ALTER TABLE prompts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON prompts USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);

-- migrate:down
DROP TABLE prompts;
