-- migrate:up
-- Whoever administers a tenant may approve its tool calls; other keys are given the scope one by one.
SELECT set_config('wayline.tenant', '*', true);
UPDATE api_keys SET scopes = scopes || '{approve}'
WHERE 'admin' = ANY (scopes) AND NOT 'approve' = ANY (scopes);

-- migrate:down
SELECT set_config('wayline.tenant', '*', true);
UPDATE api_keys SET scopes = array_remove(scopes, 'approve');
