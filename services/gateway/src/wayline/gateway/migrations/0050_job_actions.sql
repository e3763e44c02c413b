-- migrate:up
-- One action on many jobs, done job by job by whichever gateway holds it just then.
CREATE TABLE job_actions (
    tenant text NOT NULL,
    action_id text NOT NULL,
    asked jsonb NOT NULL, -- the body of the request
    asked_by text NOT NULL,
    scopes text[] NOT NULL, -- what the key may do
    user_id text, -- whose jobs alone are meant: of a key of one user
    state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'stopped')),
    cursor text, -- behind which page of the jobs it is
    handled text[] NOT NULL DEFAULT '{}', -- of the page that it is at
    counts jsonb NOT NULL DEFAULT '{}', -- by outcome
    refused jsonb NOT NULL DEFAULT '[]', -- the first of them, each with why
    waits_for text, -- why it does not go on just now
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- what is accepted later is not meant
    moved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    free_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- when another gateway may take it
    holder text,
    PRIMARY KEY (tenant, action_id)
) WITH (fillfactor = 70);
CREATE INDEX job_actions_running ON job_actions (moved_at) WHERE state = 'running';
CREATE INDEX job_actions_by_time ON job_actions (tenant, begun_at DESC, action_id DESC);
ALTER TABLE job_actions ENABLE ROW LEVEL SECURITY;
ALTER TABLE job_actions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON job_actions USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
DROP TABLE job_actions;
