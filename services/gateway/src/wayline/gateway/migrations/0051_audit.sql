-- migrate:up
-- Written down before a change is made, and once more with what came of it: no change is made without a row.
CREATE TABLE audit (
    tenant text NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    kind text NOT NULL,
    name text NOT NULL, -- of what was changed; empty: there was none yet
    operation text NOT NULL, -- of the HTTP interface, as /openapi.json names it
    by text NOT NULL, -- the name of the key
    key_id text,
    is_operator boolean NOT NULL,
    user_id text,
    trace_id text,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    before text, -- entity tags
    after text,
    detail text NOT NULL DEFAULT '',
    outcome text CHECK (outcome IN ('made', 'refused', 'failed')), -- NULL: nobody knows, the process was killed
    code text, -- why not
    PRIMARY KEY (tenant, id)
);
COMMENT ON TABLE audit IS 'Who changed what. Rows are added, get their outcome once, and go after 400 days; a forgotten user''s name is taken out.';
CREATE INDEX audit_of_kind ON audit (tenant, kind, name, id DESC);
ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON audit USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
DROP TABLE audit;
