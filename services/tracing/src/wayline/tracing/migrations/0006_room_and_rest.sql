-- migrate:up

-- One transaction writes the next version of many neighbours: room for it in their pages saves writing their indexes.
-- And what is known of the first half of such a table tells enough of the other.
ALTER TABLE jobs SET (fillfactor = 50, autovacuum_analyze_scale_factor = 1);
ALTER TABLE steps SET (fillfactor = 50, autovacuum_analyze_scale_factor = 1);
ALTER TABLE ledger SET (fillfactor = 70, autovacuum_analyze_scale_factor = 1);

-- A day's spans are not vacuumed for those that were closed either: what an open span leaves behind goes with the
-- table. They are looked up by their key, so only the key's columns are worth statistics.
CREATE OR REPLACE FUNCTION keep_spans(days integer, OUT first_day date, OUT last_day date)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tracing, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    name text;
    settings text;
BEGIN
    SELECT kept.first_day, kept.last_day INTO first_day, last_day FROM keep_partitions(days) AS kept;
    SELECT string_agg(
        format('ALTER %I SET STATISTICS %s', attname, CASE WHEN attnum = ANY (key.conkey) THEN 10 ELSE 0 END), ', '
    ) INTO settings
    FROM pg_attribute
    JOIN pg_constraint AS key ON key.conrelid = attrelid AND key.contype = 'p'
    WHERE attrelid = 'spans'::regclass AND attnum > 0 AND NOT attisdropped;
    FOR name IN
        SELECT child.relname
        FROM pg_inherits
        JOIN pg_class AS child ON child.oid = inhrelid
        WHERE inhparent = 'spans'::regclass
            AND NOT 'autovacuum_vacuum_threshold=2147483647' = ANY (coalesce(child.reloptions, '{}'))
    LOOP
        EXECUTE format(
            'ALTER TABLE %I SET (autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_threshold = 2147483647, '
            'autovacuum_analyze_scale_factor = 1), %s', name, settings
        );
    END LOOP;
END
$$;

-- migrate:down
CREATE OR REPLACE FUNCTION keep_spans(days integer, OUT first_day date, OUT last_day date)
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
ALTER TABLE jobs RESET (autovacuum_analyze_scale_factor), SET (fillfactor = 80);
ALTER TABLE steps RESET (autovacuum_analyze_scale_factor), SET (fillfactor = 80);
ALTER TABLE ledger RESET (autovacuum_analyze_scale_factor), SET (fillfactor = 80);
