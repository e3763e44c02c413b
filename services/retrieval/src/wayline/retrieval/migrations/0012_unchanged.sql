-- migrate:up

-- What a document was indexed from and how: the same again gives the same passages. Null: it is to be indexed when it comes again.
ALTER TABLE documents
    ADD COLUMN IF NOT EXISTS indexed_as text,
    ADD COLUMN IF NOT EXISTS unchanged boolean NOT NULL DEFAULT false;

-- migrate:down
ALTER TABLE documents DROP COLUMN indexed_as, DROP COLUMN unchanged;
