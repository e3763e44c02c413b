-- migrate:up

-- One row for each user of an agent: the run that was accepted last, and what became of it.
CREATE TABLE latest_results (
    tenant text NOT NULL,
    user_id text NOT NULL,
    agent text NOT NULL,
    job_id text NOT NULL,
    accepted_ns bigint NOT NULL, -- when the bus took the submission,
    accepted_seq bigint NOT NULL, -- and as which message
    status text NOT NULL,
    outcome jsonb, -- NULL: it has not ended
    plan jsonb,
    metadata jsonb NOT NULL DEFAULT '{}',
    ended_at timestamptz,
    PRIMARY KEY (tenant, user_id, agent)
) WITH (fillfactor = 70);

ALTER TABLE latest_results ENABLE ROW LEVEL SECURITY;
ALTER TABLE latest_results FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON latest_results USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
DROP TABLE latest_results;
