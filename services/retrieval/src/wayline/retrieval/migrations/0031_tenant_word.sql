-- migrate:up

-- A passage's words begin with its tenant, so that the index of words finds a tenant's rows alone and no search reads
-- those of others. The service stores the passages of before anew.
ALTER TABLE documents ALTER COLUMN words_version SET DEFAULT 4;
DROP INDEX IF EXISTS documents_old_words;
DROP INDEX IF EXISTS documents_older_words;
CREATE INDEX documents_of_old_words ON documents (tenant, document_id) WHERE words_version < 4;

-- migrate:down
DROP INDEX documents_of_old_words;
CREATE INDEX documents_older_words ON documents (tenant, document_id) WHERE words_version < 3;
ALTER TABLE documents ALTER COLUMN words_version SET DEFAULT 3;
