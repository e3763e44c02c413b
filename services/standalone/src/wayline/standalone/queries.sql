-- What Grafana may see: every tenant's traces and costs, nothing else, and only read.

-- name: lock_grafana
SELECT pg_advisory_lock(hashtext('wayline grafana'))

-- name: find_grafana
SELECT
    rolname IS NOT NULL AS present,
    coalesce('wayline.tenant=*' = ANY (rolconfig), false) AS sees_all
FROM (SELECT 'wayline_grafana' AS wanted) AS w
LEFT JOIN pg_roles ON rolname = wanted

-- name: password_statement
SELECT format('%s ROLE wayline_grafana LOGIN PASSWORD %L', CASE WHEN $1::boolean THEN 'ALTER' ELSE 'CREATE' END, $2::text)

-- name: limit_grafana
-- The policies let a session of tenant '*' see every row: this role begins each session as that, and can only read.
ALTER ROLE wayline_grafana SET wayline.tenant = '*';
ALTER ROLE wayline_grafana SET default_transaction_read_only = on;
ALTER ROLE wayline_grafana SET search_path = tracing;
ALTER ROLE wayline_grafana SET statement_timeout = '30s'

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
SELECT format('SELECT version, checksum FROM %I.applied_migrations', $1::text)

-- name: schema_sizes
SELECT n.nspname AS name, sum(pg_total_relation_size(c.oid))::bigint AS bytes
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'
GROUP BY n.nspname
ORDER BY bytes DESC
