-- Makes the partitions from `days` ago until the day after tomorrow and drops the older ones; returns the first and the
-- last day that spans can be stored for. It runs as the schema's owner, because a service may only write rows, so it
-- refuses what no service would ask for: dropping all days, or making millions.
CREATE OR REPLACE FUNCTION keep_partitions(days integer, OUT first_day date, OUT last_day date)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tracing, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    day date;
    name text;
BEGIN
    IF days IS NULL OR days NOT BETWEEN 1 AND 3660 THEN
        RAISE EXCEPTION 'spans are kept for 1 to 3660 days, not for %', days USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- One replica at a time.
    PERFORM pg_advisory_xact_lock(hashtext('tracing.keep_spans'));
    first_day := today - days;
    last_day := today + 2;
    FOR day IN SELECT generate_series(first_day, last_day, interval '1 day')::date LOOP
        name := 'spans_' || to_char(day, 'YYYYMMDD');
        IF to_regclass(name) IS NULL THEN
            EXECUTE format(
                'CREATE TABLE %I PARTITION OF spans FOR VALUES FROM (%L) TO (%L) WITH (fillfactor = 80)',
                name, day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00'
            );
            EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
            EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
            EXECUTE format(
                'CREATE POLICY tenant ON %I USING (
                    tenant = (SELECT current_setting(''wayline.tenant'', true))
                    OR (SELECT current_setting(''wayline.tenant'', true)) = ''*'')',
                name
            );
        END IF;
    END LOOP;
    FOR name IN
        SELECT child.relname
        FROM pg_inherits
        JOIN pg_class AS child ON child.oid = inhrelid
        WHERE inhparent = 'spans'::regclass AND child.relname < 'spans_' || to_char(first_day, 'YYYYMMDD')
    LOOP
        EXECUTE format('DROP TABLE %I', name);
    END LOOP;
END
$$;

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
