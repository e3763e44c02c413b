-- migrate:up

ALTER TABLE session_turns
    ADD COLUMN remember_for text, -- the user whose words in it are to be read for what lasts, until that is begun
    ADD COLUMN read_by text; -- the job that reads them
CREATE INDEX session_turns_unread ON session_turns (ended_at) WHERE remember_for IS NOT NULL;

-- Jobs that read a session for what lasts, from their decision until the bus has them.
CREATE TABLE extractions (
    tenant text NOT NULL,
    job_id text NOT NULL, -- derived from session, user and the last job that is read
    user_id text NOT NULL,
    decided_at timestamptz NOT NULL,
    submission text NOT NULL, -- JSON
    PRIMARY KEY (tenant, job_id)
);
CREATE INDEX extractions_decided ON extractions (decided_at);

ALTER TABLE extractions ENABLE ROW LEVEL SECURITY;
ALTER TABLE extractions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON extractions USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
DROP TABLE extractions;
DROP INDEX session_turns_unread;
ALTER TABLE session_turns DROP COLUMN remember_for, DROP COLUMN read_by;
