-- name: is_tenant
SELECT EXISTS (SELECT FROM tenants WHERE tenant = $1);

-- name: admit
WITH agent AS (
    SELECT version, config FROM agents
    WHERE tenant = $1 AND name = $3 AND retired_at IS NULL
    ORDER BY version DESC LIMIT 1
), held AS (
    INSERT INTO reservations (tenant, job_id, reserved_usd)
    SELECT $1, $2, $4 FROM agent
    ON CONFLICT (tenant, job_id) DO NOTHING
)
SELECT version, config FROM agent;

-- name: settle
UPDATE reservations SET settled_usd = $3, state = 'settled', settled_at = now()
WHERE tenant = $1 AND job_id = $2 AND state = 'reserved';

-- name: get_agent
SELECT version, config FROM agents
WHERE tenant = $1 AND name = $2 AND retired_at IS NULL
ORDER BY version DESC LIMIT 1;

-- name: list_agents
SELECT DISTINCT ON (name) name, version, config FROM agents
WHERE tenant = $1 AND retired_at IS NULL
ORDER BY name, version DESC;

-- name: put_agent
WITH newest AS (
    SELECT version, config, retired_at FROM agents WHERE tenant = $1 AND name = $2 ORDER BY version DESC LIMIT 1
), added AS (
    INSERT INTO agents (tenant, name, version, config)
    SELECT $1, $2, coalesce((SELECT version FROM newest), 0) + 1, $3::jsonb
    WHERE NOT EXISTS (SELECT FROM newest WHERE config = $3::jsonb AND retired_at IS NULL)
    RETURNING version, config
)
SELECT version, config FROM added
UNION ALL
SELECT version, config FROM newest WHERE NOT EXISTS (SELECT FROM added);

-- name: delete_agent
UPDATE agents SET retired_at = now() WHERE tenant = $1 AND name = $2 AND retired_at IS NULL;

-- name: seed_agent
INSERT INTO agents (tenant, name, version, config)
SELECT tenant, $1, 1, $2::jsonb FROM tenants
ON CONFLICT (tenant, name, version) DO NOTHING;
