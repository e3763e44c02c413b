-- Returns how far behind each standby of this server is. It runs as the schema's owner, because a service may not read
-- what `pg_stat_replication` says; where the owner may not either, there are no rows. Only the write-ahead log's
-- numbers and the standbys' own names are told, one row each: several may have one name, the furthest comes first.
CREATE OR REPLACE FUNCTION standbys_behind(OUT standby text, OUT behind_bytes bigint)
RETURNS SETOF record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = tracing, pg_temp AS $$
    SELECT application_name, pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint
    FROM pg_stat_replication
    WHERE NOT pg_is_in_recovery() AND replay_lsn IS NOT NULL AND state <> 'backup'
    ORDER BY 2 DESC, 1
    LIMIT 16
$$;
