-- Leases are given, extended and judged by the clock of the database alone.

-- name: begin
INSERT INTO calls (tenant, key, job_id, tool, effect, state, attempt, owner, lease_until)
SELECT $1, $2, $3, $4, $5, 'started', 1, $6, clock_timestamp() + make_interval(secs => $7)
WHERE clock_timestamp() < $8
ON CONFLICT (tenant, key) DO NOTHING
RETURNING attempt;

-- name: find
SELECT state, effect, attempt, owner, result::text AS result,
       lease_until > clock_timestamp() AS live, clock_timestamp() >= $3 AS late
FROM calls
WHERE tenant = $1 AND key = $2;

-- name: stored
SELECT result::text FROM calls WHERE tenant = $1 AND key = $2 AND state = 'finished';

-- name: take
UPDATE calls
SET attempt = attempt + 1, owner = $4, lease_until = clock_timestamp() + make_interval(secs => $5)
WHERE tenant = $1 AND key = $2 AND state = 'started' AND attempt = $3
  AND lease_until <= clock_timestamp() AND clock_timestamp() < $6
RETURNING attempt;

-- name: renew
UPDATE calls
SET lease_until = clock_timestamp() + make_interval(secs => $5)
WHERE tenant = $1 AND key = $2 AND state = 'started' AND attempt = $3 AND owner = $4
RETURNING attempt;

-- name: finish
-- Also from `unknown`: somebody gave the call up while its holder still had the answer coming.
UPDATE calls
SET state = 'finished', result = $5::text::json, ended_at = clock_timestamp()
WHERE tenant = $1 AND key = $2 AND state IN ('started', 'unknown') AND attempt = $3 AND owner = $4
RETURNING attempt;

-- name: disown
UPDATE calls
SET state = 'unknown', ended_at = clock_timestamp()
WHERE tenant = $1 AND key = $2 AND state = 'started' AND attempt = $3 AND owner = $4
RETURNING attempt;

-- name: give_up
UPDATE calls
SET state = 'unknown', ended_at = clock_timestamp()
WHERE tenant = $1 AND key = $2 AND state = 'started' AND attempt = $3 AND lease_until <= clock_timestamp()
RETURNING attempt;

-- name: resolve
INSERT INTO calls (tenant, key, job_id, tool, effect, state, attempt, owner, lease_until, result, ended_at)
VALUES ($1, $2, $3, '', 'once', 'finished', 0, '', clock_timestamp(), $4::text::json, clock_timestamp())
ON CONFLICT (tenant, key) DO UPDATE
SET state = 'finished', result = excluded.result, ended_at = excluded.ended_at
WHERE calls.state IN ('started', 'unknown')
RETURNING attempt;

-- name: void
-- Keeps a key from ever beginning: whoever begins it later finds it finished.
INSERT INTO calls (tenant, key, job_id, tool, effect, state, attempt, owner, lease_until, result, ended_at)
VALUES ($1, $2, $3, $4, 'once', 'finished', 0, '', clock_timestamp(), $5::text::json, clock_timestamp())
ON CONFLICT (tenant, key) DO NOTHING
RETURNING attempt;

-- name: lose
-- Ends a call whose holder is gone, for good: a holder that comes back writes nothing more.
UPDATE calls
SET state = 'finished', result = $3::text::json, ended_at = clock_timestamp()
WHERE tenant = $1 AND key = $2
  AND (state = 'unknown' OR state = 'started' AND lease_until <= clock_timestamp())
RETURNING attempt;

-- name: forget
-- Also what nobody ever ended: the job of a call that was left behind is as long over as any other.
DELETE FROM calls
WHERE ended_at < clock_timestamp() - make_interval(days => $1)
    OR ended_at IS NULL AND lease_until < clock_timestamp() - make_interval(days => $1);

-- name: server_revisions
SELECT tenant, name, revision::text FROM servers WHERE enabled;

-- name: servers_of
SELECT tenant, name, config::text, key_id, sealed, enabled, revision::text, saved_at
FROM servers WHERE tenant = $1 ORDER BY name;

-- name: server
SELECT tenant, name, config::text, key_id, sealed, enabled, revision::text, saved_at
FROM servers WHERE tenant = $1 AND name = $2;

-- name: put_server
INSERT INTO servers (tenant, name, config, key_id, sealed)
SELECT $1, $2, $3::text::json, $4, $5
WHERE (SELECT count(*) FROM servers WHERE tenant = $1 AND name <> $2) < $6
ON CONFLICT (tenant, name) DO UPDATE
SET config = excluded.config, key_id = excluded.key_id, sealed = excluded.sealed,
    revision = gen_random_uuid(), saved_at = clock_timestamp()
RETURNING name;

-- name: delete_server
DELETE FROM servers WHERE tenant = $1 AND name = $2 RETURNING name;

-- name: enable_server
UPDATE servers SET enabled = $3, revision = gen_random_uuid()
WHERE tenant = $1 AND name = $2
RETURNING name;

-- name: servers_of_older_keys
SELECT tenant, name, config::text, key_id, sealed, enabled, revision::text, saved_at
FROM servers WHERE key_id <> $1;

-- name: seal_server
-- The revision stays: nothing has changed for who is connected.
UPDATE servers SET key_id = $4, sealed = $5
WHERE tenant = $1 AND name = $2 AND sealed = $3
RETURNING name;
