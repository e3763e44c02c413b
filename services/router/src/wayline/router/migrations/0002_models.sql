-- migrate:up
CREATE TABLE models (
    tenant text NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    card jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, provider, model)
);

ALTER TABLE models ENABLE ROW LEVEL SECURITY;
ALTER TABLE models FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON models USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);

-- migrate:down
DROP TABLE models;
