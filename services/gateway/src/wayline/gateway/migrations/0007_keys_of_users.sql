-- migrate:up
ALTER TABLE api_keys ADD COLUMN user_id text;
COMMENT ON COLUMN api_keys.user_id IS 'For whom the key acts, and for nobody else. NULL: for any user of its tenant.';

-- migrate:down
ALTER TABLE api_keys DROP COLUMN user_id;
