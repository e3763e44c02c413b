-- migrate:each-time

-- Under row-level security an index serves only conditions that cannot leak a row they reject. Matching words raises
-- nothing and says nothing, but Postgres does not declare it so; without this, a search for words scans the tenant.
-- Dump and restore and pg_upgrade lose the declaration, so every migration looks for it.
DO $$
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AND NOT (
        SELECT proleakproof FROM pg_proc WHERE oid = 'pg_catalog.ts_match_vq(tsvector,tsquery)'::regprocedure
    ) THEN
        ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) LEAKPROOF;
    END IF;
END
$$;
