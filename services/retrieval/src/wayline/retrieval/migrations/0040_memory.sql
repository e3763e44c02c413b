-- migrate:up

-- What insights are about: people, companies, things; and how they hang together.
CREATE TABLE subjects (
    tenant text NOT NULL,
    type text NOT NULL,
    id text NOT NULL,
    name text NOT NULL DEFAULT '',
    attributes jsonb NOT NULL DEFAULT '{}',
    version integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, type, id)
);
CREATE TABLE subject_links (
    tenant text NOT NULL,
    type text NOT NULL,
    id text NOT NULL,
    other_type text NOT NULL,
    other_id text NOT NULL,
    kind text NOT NULL,
    PRIMARY KEY (tenant, type, id, other_type, other_id, kind),
    FOREIGN KEY (tenant, type, id) REFERENCES subjects ON DELETE CASCADE,
    FOREIGN KEY (tenant, other_type, other_id) REFERENCES subjects ON DELETE CASCADE
);
CREATE INDEX subject_links_back ON subject_links (tenant, other_type, other_id);

-- Facts of both kinds, one row a version: a change retires the row before it and never overwrites it. `owner` is the
-- user of a memory or the subject of an insight: what is recalled, bounded and locked together.
CREATE TABLE facts (
    tenant text NOT NULL,
    fact_id text NOT NULL,
    version integer NOT NULL DEFAULT 1,
    kind text NOT NULL CHECK (kind IN ('insight', 'memory')),
    owner text NOT NULL,
    user_id text,
    subject_type text,
    subject_id text,
    other_type text,
    other_id text,
    text text NOT NULL,
    text_hash text NOT NULL,
    category text NOT NULL,
    tier text CHECK (tier IN ('core', 'important', 'context')),
    importance smallint NOT NULL DEFAULT 5,
    confidence double precision NOT NULL,
    keywords text[] NOT NULL DEFAULT '{}',
    about text,
    source text NOT NULL,
    state text NOT NULL CHECK (state IN ('active', 'quarantined', 'superseded', 'expired', 'rejected')),
    trust text NOT NULL CHECK (trust IN ('own', 'inferred', 'stranger')),
    quote text,
    quote_job text,
    quote_seq bigint,
    replaces text,
    agent text,
    job_id text,
    step integer,
    conversation text,
    write_key text,
    tainted_by text[] NOT NULL DEFAULT '{}',
    recorded_at timestamptz NOT NULL,
    valid_from timestamptz,
    last_said_at timestamptz NOT NULL,
    retired_at timestamptz,
    retired_because text,
    expires_at timestamptz,
    expiry_given boolean NOT NULL DEFAULT false,
    times integer NOT NULL DEFAULT 1,
    uses integer NOT NULL DEFAULT 0,
    last_used_at timestamptz,
    terms text[] NOT NULL DEFAULT '{}',
    trigrams text[] NOT NULL DEFAULT '{}',
    embedding vector,
    embedding_model text,
    dimensions integer,
    PRIMARY KEY (tenant, fact_id, version)
);
CREATE UNIQUE INDEX facts_live ON facts (tenant, fact_id) WHERE retired_at IS NULL;
CREATE INDEX facts_of_owner ON facts (tenant, owner, retired_at);
CREATE INDEX facts_of_user ON facts (tenant, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX facts_newest ON facts (tenant, kind, recorded_at DESC, fact_id DESC);
CREATE INDEX facts_of_other ON facts (tenant, other_type, other_id) WHERE other_type IS NOT NULL;
CREATE INDEX facts_of_job ON facts (tenant, job_id) WHERE job_id IS NOT NULL;

-- What was saved under each key: the same key again is answered from here. No text of a fact is in the answer.
CREATE TABLE fact_writes (
    tenant text NOT NULL,
    write_key text NOT NULL,
    owner text NOT NULL,
    content_hash text NOT NULL,
    answer jsonb,
    written_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, write_key)
);
CREATE INDEX fact_writes_of_owner ON fact_writes (tenant, owner, written_at);

-- Two facts of one owner that say different things of the same.
CREATE TABLE fact_conflicts (
    tenant text NOT NULL,
    fact_id text NOT NULL,
    other_id text NOT NULL,
    why text NOT NULL,
    noticed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, fact_id, other_id)
);
CREATE INDEX fact_conflicts_back ON fact_conflicts (tenant, other_id);

-- For what a fact was recalled: counted once a key.
CREATE TABLE fact_uses (
    tenant text NOT NULL,
    fact_id text NOT NULL,
    use_key text NOT NULL,
    used_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, fact_id, use_key)
);

-- Who decided what about a fact: releases, rejections, changes.
CREATE TABLE fact_changes (
    tenant text NOT NULL,
    change_id text NOT NULL,
    fact_id text NOT NULL,
    version integer NOT NULL,
    what text NOT NULL,
    changed_by text NOT NULL,
    reason text,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, change_id)
);
CREATE INDEX fact_changes_of_fact ON fact_changes (tenant, fact_id);

DO $$
DECLARE
    named text;
BEGIN
    FOREACH named IN ARRAY ARRAY[
        'subjects', 'subject_links', 'facts', 'fact_writes', 'fact_conflicts', 'fact_uses', 'fact_changes'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', named);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', named);
        -- The setting is read once a statement, not once a row.
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING (tenant = (SELECT current_setting(''wayline.tenant'', true)) '
            'OR (SELECT current_setting(''wayline.tenant'', true)) = ''*'')', named
        );
    END LOOP;
END $$;

-- migrate:down

DROP TABLE fact_changes, fact_uses, fact_conflicts, fact_writes, facts, subject_links, subjects;
