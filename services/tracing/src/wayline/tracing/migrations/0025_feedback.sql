-- migrate:up
CREATE TABLE feedback (
    tenant text NOT NULL,
    job_id text NOT NULL,
    given_by text NOT NULL,
    key text NOT NULL, -- what was judged
    score double precision CHECK (score BETWEEN 0 AND 1),
    label text,
    comment text NOT NULL,
    revision integer NOT NULL DEFAULT 1, -- one more at each change of mind: each is a span of its own
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, job_id, given_by, key)
);
COMMENT ON TABLE feedback IS 'What people and programs said of a job: the last of each about each key.';
CREATE INDEX feedback_at ON feedback USING brin (at);
CREATE INDEX feedback_given_by ON feedback (tenant, given_by);
ALTER TABLE feedback ENABLE ROW LEVEL SECURITY;
ALTER TABLE feedback FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON feedback USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- In sum, so that a list of jobs reads one table. The projection of a log leaves both alone.
ALTER TABLE jobs ADD COLUMN feedback jsonb, ADD COLUMN feedback_score double precision;
COMMENT ON COLUMN jobs.feedback_score IS 'The mean of the scores; NULL: none was given.';
CREATE INDEX jobs_judged ON jobs (tenant, created_at DESC, job_id DESC) WHERE feedback IS NOT NULL;

-- migrate:down
ALTER TABLE jobs DROP COLUMN feedback, DROP COLUMN feedback_score;
DROP TABLE feedback;
