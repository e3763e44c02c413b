-- migrate:up

-- Words no longer end at characters that nobody sees, and emoji are found: the service stores the passages of before anew.
ALTER TABLE documents ALTER COLUMN words_version SET DEFAULT 3;
CREATE INDEX documents_older_words ON documents (tenant, document_id) WHERE words_version < 3;

-- migrate:down
DROP INDEX documents_older_words;
ALTER TABLE documents ALTER COLUMN words_version SET DEFAULT 2;
