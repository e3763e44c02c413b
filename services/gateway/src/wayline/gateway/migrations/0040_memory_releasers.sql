-- migrate:up
-- A key that administers a tenant may release what its jobs remembered of strangers; others are given the scope one by one.
SELECT set_config('wayline.tenant', '*', true);
UPDATE api_keys SET scopes = scopes || '{memory:release}'
WHERE 'admin' = ANY (scopes) AND NOT 'memory:release' = ANY (scopes);

-- migrate:down
SELECT set_config('wayline.tenant', '*', true);
UPDATE api_keys SET scopes = array_remove(scopes, 'memory:release');
