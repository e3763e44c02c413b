-- migrate:up

-- Words are stemmed by the language of their passage, Korean is found by pairs, and names are found by their parts: the
-- service stores the passages of before anew.
ALTER TABLE documents ALTER COLUMN words_version SET DEFAULT 5;
CREATE INDEX documents_of_older_words ON documents (tenant, document_id) WHERE words_version < 5;
DROP INDEX IF EXISTS documents_of_old_words;

-- migrate:down
DROP INDEX documents_of_older_words;
CREATE INDEX documents_of_old_words ON documents (tenant, document_id) WHERE words_version < 4;
ALTER TABLE documents ALTER COLUMN words_version SET DEFAULT 4;
