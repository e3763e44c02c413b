-- migrate:up

-- In which conversations a fact was said, and in which it was used.
CREATE TABLE fact_conversations (
    tenant text NOT NULL,
    fact_id text NOT NULL,
    conversation text NOT NULL, -- the session, or the job where there is none
    job_id text, -- the last job of it that said or used the fact
    said integer NOT NULL DEFAULT 0,
    used integer NOT NULL DEFAULT 0,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, fact_id, conversation)
);
CREATE INDEX fact_conversations_used ON fact_conversations (last_at) WHERE said = 0;
CREATE INDEX fact_conversations_of_job ON fact_conversations (tenant, job_id) WHERE job_id IS NOT NULL;
ALTER TABLE fact_conversations ENABLE ROW LEVEL SECURITY;
ALTER TABLE fact_conversations FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON fact_conversations USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

INSERT INTO fact_conversations (tenant, fact_id, conversation, job_id, said, first_at, last_at)
SELECT DISTINCT ON (tenant, fact_id, coalesce(conversation, job_id))
    tenant, fact_id, coalesce(conversation, job_id), job_id, 1, recorded_at, recorded_at
FROM facts WHERE coalesce(conversation, job_id) IS NOT NULL
ORDER BY tenant, fact_id, coalesce(conversation, job_id), recorded_at;

-- migrate:down
DROP TABLE fact_conversations;
