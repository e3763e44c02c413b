-- name: is_tenant
SELECT EXISTS (SELECT FROM tenants WHERE tenant = $1);

-- name: admit
WITH asked AS (
    SELECT * FROM unnest($2::text[], $3::text[], $4::numeric[]) AS asked (job_id, agent, reserve_usd)
), agent AS (
    SELECT DISTINCT ON (name) name, version, config FROM agents
    WHERE tenant = $1 AND name = ANY ($3) AND retired_at IS NULL
    ORDER BY name, version DESC
), held AS (
    INSERT INTO reservations (tenant, job_id, reserved_usd)
    SELECT $1, job_id, reserve_usd FROM asked JOIN agent ON agent.name = asked.agent
    ON CONFLICT (tenant, job_id) DO NOTHING
)
SELECT name, version, config FROM agent;

-- name: settle
UPDATE reservations AS held SET settled_usd = cost.usd, state = 'settled', settled_at = now()
FROM unnest($2::text[], $3::numeric[]) AS cost (job_id, usd)
WHERE held.tenant = $1 AND held.job_id = cost.job_id AND held.state = 'reserved'
RETURNING held.job_id;

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

-- name: list_models
SELECT card FROM models WHERE tenant = $1 ORDER BY provider, model;

-- name: put_model
INSERT INTO models (tenant, provider, model, card)
SELECT $1, $2, $3, $4::jsonb
WHERE EXISTS (SELECT FROM models WHERE tenant = $1 AND provider = $2 AND model = $3)
    OR (SELECT count(*) FROM models WHERE tenant = $1) < $5
ON CONFLICT (tenant, provider, model) DO UPDATE SET card = excluded.card, updated_at = now()
RETURNING true;

-- name: delete_model
DELETE FROM models WHERE tenant = $1 AND provider = $2 AND model = $3;
