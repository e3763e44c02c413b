-- migrate:up

-- Estimated tokens of the text that can be read in a document; null: an earlier version kept it, and its bytes tell.
ALTER TABLE originals ADD COLUMN IF NOT EXISTS text_tokens bigint;

-- migrate:down
ALTER TABLE originals DROP COLUMN text_tokens;
