-- migrate:up
CREATE TABLE dismissed_letters (
    tenant text NOT NULL,
    sequence bigint NOT NULL,
    code text NOT NULL,
    subject text NOT NULL,
    letter_reason text NOT NULL,
    reason text NOT NULL,
    dismissed_by text NOT NULL,
    dismissed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, sequence)
);
COMMENT ON TABLE dismissed_letters IS 'Dead letters that somebody has dismissed, and why; kept as long as the letters would be.';
ALTER TABLE dismissed_letters ENABLE ROW LEVEL SECURITY;
ALTER TABLE dismissed_letters FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON dismissed_letters USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);

-- migrate:down
DROP TABLE dismissed_letters;
