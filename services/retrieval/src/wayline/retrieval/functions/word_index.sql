-- migrate:each-time

-- Under row-level security an index serves only conditions that cannot leak a row they reject. Matching words raises
-- nothing and says nothing, but Postgres does not declare it so; without this, every keyword search scans the tenant. The
-- same is true of what the indexes of near words and of filters are made of.
-- Dump and restore and pg_upgrade lose the declaration, so every migration looks for it.
DO $$
DECLARE
    harmless regprocedure;
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        FOR harmless IN
            SELECT oid FROM pg_proc
            WHERE NOT proleakproof AND oid IN (
                'pg_catalog.ts_match_vq(tsvector,tsquery)'::regprocedure,
                'term_deletions(text,text)'::regprocedure,
                'filter_words(text,text,jsonb)'::regprocedure
            )
        LOOP
            EXECUTE format('ALTER FUNCTION %s LEAKPROOF', harmless);
        END LOOP;
    END IF;
END
$$;
