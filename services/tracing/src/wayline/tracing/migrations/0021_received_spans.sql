-- migrate:up

-- Traces of a tenant's own programs that belong into the tree of a job, under one of its spans.
CREATE TABLE joined_traces (
    tenant text NOT NULL,
    joins text NOT NULL,
    trace_id text NOT NULL,
    under text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, joins, trace_id)
);
CREATE INDEX joined_traces_at ON joined_traces (at);

-- How many spans a tenant's programs have sent in an hour.
CREATE TABLE received_spans (
    tenant text NOT NULL,
    hour timestamptz NOT NULL,
    spans bigint NOT NULL,
    PRIMARY KEY (tenant, hour)
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['joined_traces', 'received_spans'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING (
                tenant = (SELECT current_setting(''wayline.tenant'', true))
                OR (SELECT current_setting(''wayline.tenant'', true)) = ''*'')',
            name
        );
    END LOOP;
END
$$;

-- migrate:down
DROP TABLE received_spans, joined_traces;
