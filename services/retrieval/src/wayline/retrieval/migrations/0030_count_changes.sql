-- migrate:up

-- What documents have added to and taken from a tenant's counts and what is not in them yet: at most a few hundred
-- passages a row. Documents that updated `terms` and `corpora` themselves would wait for each other, since all of them
-- have the same common words. A search counts these rows, too.
CREATE TABLE IF NOT EXISTS count_changes (
    tenant text NOT NULL,
    change bigint GENERATED ALWAYS AS IDENTITY,
    embedding_model text NOT NULL,
    dimensions integer NOT NULL,
    chunks bigint NOT NULL,
    words bigint NOT NULL,
    terms text[] NOT NULL,
    term_chunks integer[] NOT NULL,
    terms_count integer NOT NULL,
    PRIMARY KEY (tenant, change)
);
ALTER TABLE count_changes ENABLE ROW LEVEL SECURITY;
ALTER TABLE count_changes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON count_changes USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- Some passages of a document, without a look at the others.
CREATE INDEX IF NOT EXISTS chunks_in_document ON chunks (tenant, document_id, position);
DROP INDEX IF EXISTS chunks_of_document;

-- migrate:down
CREATE INDEX chunks_of_document ON chunks (tenant, document_id);
DROP INDEX chunks_in_document;
DROP TABLE count_changes;
