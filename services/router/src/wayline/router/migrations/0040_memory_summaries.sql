-- migrate:up

-- Users of whom what is remembered is to be summarised from time to time.
CREATE TABLE memory_summaries (
    tenant text NOT NULL,
    user_id text NOT NULL,
    agent text NOT NULL, -- whose job wanted it last
    wanted_at timestamptz, -- since when; null: not since the last job
    begun_at timestamptz, -- when the last job was decided
    PRIMARY KEY (tenant, user_id)
);
CREATE INDEX memory_summaries_wanted ON memory_summaries (wanted_at) WHERE wanted_at IS NOT NULL;

ALTER TABLE memory_summaries ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_summaries FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON memory_summaries USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
DROP TABLE memory_summaries;
