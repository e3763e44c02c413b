-- migrate:up

-- A day's spans are added to and then dropped with their table: to vacuum it for every fifth that it grows is work for
-- nothing, and what is known of its first half tells enough of the other.

ALTER FUNCTION keep_spans RENAME TO keep_partitions;

CREATE FUNCTION keep_spans(days integer, OUT first_day date, OUT last_day date)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tracing, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    name text;
BEGIN
    SELECT kept.first_day, kept.last_day INTO first_day, last_day FROM keep_partitions(days) AS kept;
    FOR name IN
        SELECT child.relname
        FROM pg_inherits
        JOIN pg_class AS child ON child.oid = inhrelid
        WHERE inhparent = 'spans'::regclass
            AND NOT 'autovacuum_vacuum_insert_threshold=-1' = ANY (coalesce(child.reloptions, '{}'))
    LOOP
        EXECUTE format(
            'ALTER TABLE %I SET (autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 1)', name
        );
    END LOOP;
END
$$;

-- migrate:down
DROP FUNCTION keep_spans;
ALTER FUNCTION keep_partitions RENAME TO keep_spans;
