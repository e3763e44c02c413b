-- migrate:up

-- The language that a document is in (ISO 639-1), as it was detected; null: it cannot be told, or nobody looked yet.
ALTER TABLE documents ADD COLUMN IF NOT EXISTS language text;

-- migrate:down
ALTER TABLE documents DROP COLUMN language;
