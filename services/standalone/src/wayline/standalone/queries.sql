-- What Grafana may see: every tenant's traces and costs, nothing else, and only read.

-- name: lock_grafana
SELECT pg_advisory_lock(hashtext('wayline grafana'))

-- name: grafana_sees_all
SELECT coalesce('wayline.tenant=*' = ANY (rolconfig), false) FROM pg_roles WHERE rolname = $1

-- name: limit_grafana
-- The policies let a session of tenant '*' see every row: this role begins each session as that, and can only read.
SELECT format('ALTER ROLE %I SET %s', $1::text, chosen) AS statement
FROM unnest(ARRAY[
    $$wayline.tenant = '*'$$,
    'default_transaction_read_only = on',
    'search_path = tracing',
    $$statement_timeout = '30s'$$
]) AS chosen

-- name: grant_grafana
GRANT USAGE ON SCHEMA tracing TO wayline_grafana;
ALTER DEFAULT PRIVILEGES IN SCHEMA tracing GRANT SELECT ON TABLES TO wayline_grafana;
GRANT SELECT ON ALL TABLES IN SCHEMA tracing TO wayline_grafana;
REVOKE ALL ON tracing.applied_migrations FROM wayline_grafana;
-- Everybody may make large objects, which fill the disk; nobody here does. Only a superuser can forbid it.
DO $$
DECLARE
    writer regprocedure;
BEGIN
    FOR writer IN
        SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = 'pg_catalog'::regnamespace
            AND proname IN ('lo_creat', 'lo_create', 'lo_from_bytea', 'lo_put', 'lowrite', 'lo_truncate', 'lo_truncate64')
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', writer);
    END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE WARNING 'large objects can be made by every role: % is no superuser', current_user;
END
$$

-- name: create_database
CREATE DATABASE wayline

-- name: find_database
SELECT count(*) > 0 FROM pg_database WHERE datname = 'wayline'

-- name: applied
SELECT to_regclass(format('%I.applied_migrations', $1::text)) IS NOT NULL

-- name: vector_version
SELECT extversion FROM pg_extension WHERE extname = 'vector'

-- name: word_index_is_used
SELECT proleakproof FROM pg_proc WHERE oid = 'pg_catalog.ts_match_vq(tsvector,tsquery)'::regprocedure

-- name: applied_statement
-- As JSON, because versions before this one have no such column.
SELECT format(
    'SELECT version, checksum, coalesce(to_jsonb(a) ->> ''older_may_run'' = ''true'', false) AS older_may_run
    FROM %I.applied_migrations AS a', $1::text)

-- name: see_all_tenants
SELECT set_config('wayline.tenant', '*', false)

-- name: has_jobs
SELECT to_regclass('tracing.jobs') IS NOT NULL

-- name: open_jobs
SELECT tenant, job_id FROM tracing.jobs WHERE ended_at IS NULL ORDER BY created_at LIMIT $1

-- name: schema_sizes
SELECT n.nspname AS name, sum(pg_total_relation_size(c.oid))::bigint AS bytes
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'
GROUP BY n.nspname
ORDER BY bytes DESC

-- name: table_names
SELECT string_agg(format('%I.%I', n.nspname, c.relname), ', ')
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname = ANY ($1::text[])

-- name: schemas_there
SELECT nspname FROM pg_namespace WHERE nspname = ANY ($1::text[]) ORDER BY nspname

-- name: drop_schemas
SELECT string_agg(format('DROP SCHEMA %I CASCADE', name), '; ') FROM unnest($1::text[]) AS name

-- name: create_vector
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public

-- name: jobs_reserved
SELECT tenant, job_id FROM router.reservations WHERE (tenant, job_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))

-- name: reserve_child
-- As the log's first record says. No row: its parent has none either.
INSERT INTO router.reservations (
    tenant, job_id, reserved_usd, agent, user_id, cap_usd, cap_set, reserved_at, agent_version, agent_label, ancestors
)
SELECT $1, $2, 0, $3, $4, $5, $5::numeric IS NOT NULL, $6, $7, $8, job_id || ancestors
FROM router.reservations WHERE tenant = $1 AND job_id = $9
ON CONFLICT (tenant, job_id) DO NOTHING
RETURNING job_id

-- name: jobs_unsettled
SELECT tenant, job_id, reserved_usd FROM router.reservations
WHERE state = 'reserved' AND NOT starts_with(job_id, 'tool/')

-- name: free_reservation
-- Of a job that never got its log. Its submission, where it is still queued, reserves anew.
DELETE FROM router.reservations WHERE tenant = $1 AND job_id = $2 AND state = 'reserved' AND reserved_usd = 0

-- name: lapse_call
-- As if its holder had died: what becomes of the call is decided by its effect, as after a kill.
INSERT INTO tools.calls (tenant, key, job_id, tool, effect, state, attempt, owner, lease_until)
VALUES ($1, $2, $3, $4, $5, 'started', 1, 'restored', clock_timestamp())
ON CONFLICT (tenant, key) DO NOTHING
RETURNING 1

-- name: no_login
-- No row: there is no such role, as in a database that a backup was restored into.
SELECT format('ALTER ROLE %I NOLOGIN PASSWORD NULL', rolname) FROM pg_roles WHERE rolname = $1

-- name: end_sessions
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ANY ($1::text[])

-- name: sessions_of
SELECT usename::text AS role, count(*) AS sessions FROM pg_stat_activity
WHERE usename = ANY ($1::text[])
GROUP BY usename

-- name: act_for_all
SELECT set_config('wayline.tenant', '*', true)

-- name: rows_of_older_keys
-- Logins under way too: they end by themselves, within ten minutes.
SELECT name, count(*) AS rows FROM (
    SELECT 'tools.servers' AS name, key_id FROM tools.servers WHERE key_id IS NOT NULL
    UNION ALL SELECT 'tools.authorizations', key_id FROM tools.authorizations
    UNION ALL SELECT 'tools.secrets', key_id FROM tools.secrets
    UNION ALL SELECT 'tools.logins', key_id FROM tools.logins WHERE expires_at > clock_timestamp()
    UNION ALL SELECT 'notifier.webhooks', key_id FROM notifier.webhooks
    UNION ALL SELECT 'notifier.webhooks', former_key_id FROM notifier.webhooks WHERE former_until > clock_timestamp()
) AS sealed
WHERE key_id = ANY ($1::text[])
GROUP BY name
ORDER BY name

-- name: room_for_connections
SELECT current_setting('max_connections')::int
    - current_setting('superuser_reserved_connections')::int
    - coalesce(current_setting('reserved_connections', true), '0')::int
