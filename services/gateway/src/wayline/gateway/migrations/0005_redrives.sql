-- migrate:up
CREATE TABLE redrives (
    tenant text NOT NULL,
    redrive_id text NOT NULL,
    fingerprint text NOT NULL,
    redriven_by text NOT NULL,
    jobs integer NOT NULL, -- that failed of the cause then
    forked integer,
    already integer, -- that had been redriven before
    refused integer,
    begun_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz, -- NULL: it was cut off; to redrive again is safe
    PRIMARY KEY (tenant, redrive_id)
);
COMMENT ON TABLE redrives IS 'Who let failed jobs go on, when, of which cause and how many.';
CREATE INDEX redrives_by_time ON redrives (tenant, begun_at DESC);
ALTER TABLE redrives ENABLE ROW LEVEL SECURITY;
ALTER TABLE redrives FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON redrives USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);

-- migrate:down
DROP TABLE redrives;
