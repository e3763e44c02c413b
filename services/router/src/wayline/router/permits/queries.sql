-- name: lock_tenant
-- One router at a time counts the running jobs of a tenant: what it reads after the lock was committed before it.
SELECT pg_advisory_xact_lock(hashtext('router.permits'), hashtext($1));

-- name: put_pause
INSERT INTO pauses (kind, tenant, name, reason, paused_by, at_once) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (kind, tenant, name) DO UPDATE
SET reason = excluded.reason, paused_by = excluded.paused_by, at_once = excluded.at_once
RETURNING kind, tenant, name, reason, paused_by AS by, since, at_once AS now;

-- name: count_pauses
SELECT count(*) FROM pauses WHERE tenant = $1 AND (kind, name) <> ($2, $3);

-- name: list_pauses
SELECT kind, tenant, name, reason, paused_by AS by, since, at_once AS now FROM pauses
WHERE tenant = $1 OR kind = 'lane' ORDER BY kind = 'lane' DESC, kind DESC, name;

-- name: all_pauses
SELECT kind, tenant, name, reason, paused_by AS by, since, at_once AS now FROM pauses;

-- name: end_pause
DELETE FROM pauses WHERE kind = $1 AND tenant = $2 AND name = $3;

-- name: pause_of_job
-- Of several, one that stops running jobs.
SELECT kind, tenant, name, reason, paused_by AS by, since, at_once AS now FROM pauses
WHERE (kind, tenant, name) IN (('tenant', $1, $1), ('lane', '', $2), ('agent', $1, $3)) AND (at_once OR NOT $4::boolean)
ORDER BY at_once DESC, since LIMIT 1;

-- name: put_running_limit
INSERT INTO running_limits (tenant, whose, name, max_running, when_full) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, whose, name) DO UPDATE SET max_running = excluded.max_running, when_full = excluded.when_full;

-- name: count_running_limits
SELECT count(*) FROM running_limits WHERE tenant = $1 AND (whose, name) <> ($2, $3);

-- name: list_running_limits
SELECT tenant, whose, name, max_running, when_full, used.running, used.waiting
FROM running_limits AS one LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = 'running') AS running, count(*) FILTER (WHERE state = 'waiting') AS waiting
    FROM (
        SELECT state FROM run_permits WHERE one.whose = 'agent' AND tenant = $1 AND agent = one.name
        UNION ALL SELECT state FROM run_permits WHERE one.whose = 'user' AND tenant = $1 AND user_id = one.name
        UNION ALL SELECT state FROM run_permits WHERE one.whose = 'key' AND tenant = $1 AND key_id = one.name
    ) AS job
) AS used ON one.name <> '*'
WHERE tenant = $1 ORDER BY whose, name;

-- name: all_running_limits
SELECT tenant, whose, name, max_running, when_full FROM running_limits;

-- name: delete_running_limit
DELETE FROM running_limits WHERE tenant = $1 AND whose = $2 AND name = $3;

-- name: refuses
-- Whether any limit of a tenant refuses jobs.
SELECT EXISTS (SELECT FROM running_limits WHERE tenant = $1 AND when_full = 'refuse');

-- name: limits_of_job
-- Each limit that counts a job, with the other jobs that have a place in it, and whether one waits for one before it.
SELECT DISTINCT ON (whose) whose, name, max_running, when_full,
    CASE whose
        WHEN 'agent' THEN (
            SELECT count(*) FROM run_permits
            WHERE tenant = $1 AND agent = $3 AND state = 'running' AND job_id <> $2
        )
        WHEN 'user' THEN (
            SELECT count(*) FROM run_permits
            WHERE tenant = $1 AND user_id = $4 AND state = 'running' AND job_id <> $2
        )
        ELSE (
            SELECT count(*) FROM run_permits
            WHERE tenant = $1 AND key_id = $5 AND state = 'running' AND job_id <> $2
        )
    END AS running,
    CASE whose
        WHEN 'agent' THEN EXISTS (
            SELECT FROM run_permits
            WHERE tenant = $1 AND agent = $3 AND state = 'waiting' AND at IS NOT NULL AND job_id <> $2
        )
        WHEN 'user' THEN EXISTS (
            SELECT FROM run_permits
            WHERE tenant = $1 AND user_id = $4 AND state = 'waiting' AND at IS NOT NULL AND job_id <> $2
        )
        ELSE EXISTS (
            SELECT FROM run_permits
            WHERE tenant = $1 AND key_id = $5 AND state = 'waiting' AND at IS NOT NULL AND job_id <> $2
        )
    END AS before
FROM running_limits
WHERE tenant = $1
    AND (whose, name) IN (
        ('agent', $3), ('agent', '*'), ('user', $4), ('user', CASE WHEN $4::text IS NOT NULL THEN '*' END),
        ('key', $5), ('key', CASE WHEN $5::text IS NOT NULL THEN '*' END)
    )
ORDER BY whose, name = '*';

-- name: permit_of_job
SELECT * FROM run_permits WHERE tenant = $1 AND job_id = $2;

-- name: put_permit
-- A job that waits keeps the time since when it does.
INSERT INTO run_permits AS old (tenant, job_id, state, at, lane, agent, user_id, key_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant, job_id) DO UPDATE SET state = excluded.state, at = excluded.at, told = true,
    since = CASE WHEN old.state = excluded.state THEN old.since ELSE excluded.since END;

-- name: drop_permit
DELETE FROM run_permits WHERE tenant = $1 AND job_id = $2;

-- name: note_waiting
-- Not of a job that was woken since: what is said of a record may come late.
INSERT INTO run_permits AS old (tenant, job_id, state, at, lane, agent) VALUES ($1, $2, $3, $4, $5, '')
ON CONFLICT (tenant, job_id) DO UPDATE SET state = excluded.state, at = excluded.at
WHERE old.at IS NULL OR old.at < excluded.at;

-- name: leave_place
DELETE FROM run_permits WHERE tenant = $1 AND job_id = $2 AND (at IS NULL OR at < $3);

-- name: drop_permit_at
DELETE FROM run_permits WHERE tenant = $1 AND job_id = $2 AND state = $3 AND at IS NOT DISTINCT FROM $4;

-- name: over_pauses
-- Jobs that wait for a pause that there is no more. What may hold them is asked once for all of an agent and lane.
WITH held AS MATERIALIZED (
    SELECT DISTINCT tenant, lane, agent FROM run_permits WHERE state = 'paused' AND at IS NOT NULL
), over AS MATERIALIZED (
    SELECT tenant, lane, agent FROM held
    WHERE NOT EXISTS (SELECT FROM pauses WHERE kind = 'tenant' AND tenant = held.tenant AND name = held.tenant)
        AND NOT EXISTS (SELECT FROM pauses WHERE kind = 'lane' AND tenant = '' AND name = held.lane)
        AND NOT EXISTS (SELECT FROM pauses WHERE kind = 'agent' AND tenant = held.tenant AND name = held.agent)
)
SELECT tenant, job_id, state, at, lane FROM run_permits
WHERE state = 'paused' AND at IS NOT NULL AND (tenant, lane, agent) IN (SELECT tenant, lane, agent FROM over)
ORDER BY since LIMIT $1;

-- name: tenants_that_wait
SELECT DISTINCT tenant FROM run_permits WHERE state = 'waiting' AND at IS NOT NULL;

-- name: limits_of_tenant
SELECT whose, name, max_running FROM running_limits WHERE tenant = $1;

-- name: running_jobs
-- How many have a place, by what limits count them by.
SELECT agent, user_id, key_id, count(*) AS running FROM run_permits
WHERE tenant = $1 AND state = 'running' GROUP BY agent, user_id, key_id;

-- name: waiting_jobs
-- In turn; not those of agents, users and keys that have no free place.
SELECT tenant, job_id, state, at, lane, agent, user_id, key_id FROM run_permits
WHERE tenant = $1 AND state = 'waiting' AND at IS NOT NULL
    AND agent <> ALL ($2::text[])
    AND (user_id IS NULL OR user_id <> ALL ($3::text[]))
    AND (key_id IS NULL OR key_id <> ALL ($4::text[]))
ORDER BY since, job_id LIMIT $5;

-- name: give_places
-- Not to one that was woken or has ended since it was read: that needs no lock of its tenant.
UPDATE run_permits AS job SET state = 'running', told = false, since = clock_timestamp()
FROM unnest($2::text[], $3::bigint[]) AS given (job_id, at)
WHERE job.tenant = $1 AND job.job_id = given.job_id AND job.at = given.at AND job.state = 'waiting'
RETURNING job.job_id;

-- name: note_told
UPDATE run_permits SET told = true WHERE tenant = $1 AND job_id = $2 AND state = 'running' AND at = $3;

-- name: untold_jobs
-- Left by a router that died; not those that another one has in hand right now.
SELECT tenant, job_id, state, at, lane FROM run_permits
WHERE NOT told AND since < clock_timestamp() - make_interval(secs => $1) LIMIT $2;

-- name: old_permits
-- Behind a place, of rows that are so old that what ends them may have been lost.
SELECT tenant, job_id, state, at, lane FROM run_permits
WHERE since < clock_timestamp() - make_interval(secs => $1) AND (tenant, job_id) > ($2, $3)
ORDER BY tenant, job_id LIMIT $4;
