-- migrate:up
ALTER TABLE api_keys ADD COLUMN last_used_at timestamptz, ADD COLUMN machine boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN api_keys.machine IS 'The key of `wayline up` for the command line beside it; it does not count as the first key.';
CREATE INDEX api_keys_by_tenant ON api_keys (tenant, created_at);

-- Who installed the platform administers it.
SELECT set_config('wayline.tenant', '*', true);
UPDATE api_keys SET scopes = scopes || '{operator}'
WHERE tenant = 'default' AND name = 'first key' AND 'admin' = ANY (scopes) AND NOT 'operator' = ANY (scopes);

-- migrate:down
DROP INDEX api_keys_by_tenant;
ALTER TABLE api_keys DROP COLUMN machine, DROP COLUMN last_used_at;
