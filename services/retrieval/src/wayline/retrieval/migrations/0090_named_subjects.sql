-- migrate:up

ALTER TABLE subjects ADD COLUMN name_key text; -- by which texts that name it are found; NULL: not made yet
CREATE INDEX subjects_named ON subjects (tenant, name_key);
CREATE INDEX subjects_unnamed ON subjects (tenant) WHERE name_key IS NULL;
ALTER TABLE facts ADD COLUMN linked boolean NOT NULL DEFAULT false; -- whether it was looked through for names of subjects
CREATE INDEX facts_unlinked ON facts (tenant) WHERE kind = 'insight' AND NOT linked AND retired_at IS NULL;

-- A subject that is named in an insight about another one. The link counts as long as the insight does.
CREATE TABLE subject_mentions (
    tenant text NOT NULL,
    type text NOT NULL,
    id text NOT NULL,
    other_type text NOT NULL,
    other_id text NOT NULL,
    fact_id text NOT NULL, -- the insight
    found_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    undone_by text, -- who took it back: it is not found again
    PRIMARY KEY (tenant, type, id, other_type, other_id),
    FOREIGN KEY (tenant, type, id) REFERENCES subjects ON DELETE CASCADE,
    FOREIGN KEY (tenant, other_type, other_id) REFERENCES subjects ON DELETE CASCADE
);
CREATE INDEX subject_mentions_back ON subject_mentions (tenant, other_type, other_id);
CREATE INDEX subject_mentions_of_fact ON subject_mentions (tenant, fact_id);
ALTER TABLE subject_mentions ENABLE ROW LEVEL SECURITY;
ALTER TABLE subject_mentions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON subject_mentions USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
DROP TABLE subject_mentions;
DROP INDEX facts_unlinked, subjects_named, subjects_unnamed;
ALTER TABLE facts DROP COLUMN linked;
ALTER TABLE subjects DROP COLUMN name_key;
