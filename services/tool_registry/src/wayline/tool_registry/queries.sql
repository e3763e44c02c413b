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
