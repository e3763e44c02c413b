-- migrate:up
ALTER TABLE calls ADD COLUMN content_hash text;
COMMENT ON COLUMN calls.content_hash IS
    'Of the tool, its arguments and whom the call is for: the same key with another one is a conflict. NULL: unknown.';

-- migrate:down
ALTER TABLE calls DROP COLUMN content_hash;
