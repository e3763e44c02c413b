-- migrate:up

-- Objects on the bus that hold what a document's uploads were too large for: they go with it.
ALTER TABLE documents ADD COLUMN payloads text[] NOT NULL DEFAULT '{}';

-- migrate:down
ALTER TABLE documents DROP COLUMN payloads;
