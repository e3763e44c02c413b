-- migrate:up
ALTER TABLE job_actions ADD COLUMN key_id text;
COMMENT ON COLUMN job_actions.key_id IS 'With whose rights and rates it goes on; it ends with the key. NULL: none was shown, or it was begun before this was stored.';

-- migrate:down
ALTER TABLE job_actions DROP COLUMN key_id;
