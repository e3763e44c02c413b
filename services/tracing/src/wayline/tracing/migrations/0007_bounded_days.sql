-- migrate:up
-- It runs with the owner's rights, so it refuses what no service would ask for: dropping all days, or making millions.
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

-- migrate:down
CREATE OR REPLACE FUNCTION keep_partitions(days integer, OUT first_day date, OUT last_day date)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tracing, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    day date;
    name text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('tracing.keep_spans'));
    first_day := today - greatest(days, 0);
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
