-- migrate:up

-- A conversation. Its row orders its jobs: whoever admits one holds the row.
CREATE TABLE sessions (
    tenant text NOT NULL,
    session_id text NOT NULL,
    agent text NOT NULL, -- of the newest turn
    user_id text, -- of the newest turn
    turns integer NOT NULL DEFAULT 0, -- the number of the newest turn
    tail_job text, -- the newest turn's job
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, session_id)
) WITH (fillfactor = 50);
CREATE INDEX sessions_updated ON sessions (tenant, updated_at DESC, session_id DESC);

-- One row a job of a session, never deleted: a job that is admitted again finds the turn it took.
CREATE TABLE session_turns (
    tenant text NOT NULL,
    job_id text NOT NULL,
    session_id text, -- NULL: the session was forgotten
    number integer NOT NULL, -- from 1
    after text, -- the job of the turn before
    taken_at timestamptz NOT NULL,
    ended_at timestamptz, -- when its end was noticed; the job's log is what decides
    PRIMARY KEY (tenant, job_id),
    UNIQUE (tenant, session_id, number)
);
CREATE INDEX session_turns_open ON session_turns (tenant, session_id, number) WHERE ended_at IS NULL;

ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON sessions USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);
ALTER TABLE session_turns ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_turns FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON session_turns USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
DROP FUNCTION IF EXISTS take_turns, forget_session;
DROP TABLE session_turns, sessions;
