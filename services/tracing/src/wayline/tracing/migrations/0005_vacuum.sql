-- migrate:up

-- A day's spans are added to and then dropped with their table: to vacuum it for every fifth that it grows is work for
-- nothing, and what is known of its first half tells enough of the other.

DO $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT child.relname
        FROM pg_inherits
        JOIN pg_class AS child ON child.oid = inhrelid
        WHERE inhparent = 'spans'::regclass
    LOOP
        EXECUTE format(
            'ALTER TABLE %I SET (autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 1)', name
        );
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION keep_spans(days integer, OUT first_day date, OUT last_day date)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tracing, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    day date;
    name text;
BEGIN
    -- One replica at a time.
    PERFORM pg_advisory_xact_lock(hashtext('tracing.keep_spans'));
    first_day := today - greatest(days, 0);
    last_day := today + 2;
    FOR day IN SELECT generate_series(first_day, last_day, interval '1 day')::date LOOP
        name := 'spans_' || to_char(day, 'YYYYMMDD');
        IF to_regclass(name) IS NULL THEN
            EXECUTE format(
                'CREATE TABLE %I PARTITION OF spans FOR VALUES FROM (%L) TO (%L) WITH (
                    fillfactor = 80, autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 1
                )',
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
CREATE OR REPLACE FUNCTION keep_spans(days integer, OUT first_day date, OUT last_day date)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = tracing, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    day date;
    name text;
BEGIN
    -- One replica at a time.
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

DO $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT child.relname
        FROM pg_inherits
        JOIN pg_class AS child ON child.oid = inhrelid
        WHERE inhparent = 'spans'::regclass
    LOOP
        EXECUTE format(
            'ALTER TABLE %I RESET (autovacuum_vacuum_insert_threshold, autovacuum_analyze_scale_factor)', name
        );
    END LOOP;
END
$$;
