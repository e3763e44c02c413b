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
    FROM run_permits AS job
    WHERE job.tenant = one.tenant
        AND one.name = CASE one.whose WHEN 'agent' THEN job.agent WHEN 'user' THEN job.user_id ELSE job.key_id END
) AS used ON one.name <> '*'
WHERE tenant = $1 ORDER BY whose, name;

-- name: all_running_limits
SELECT tenant, whose, name, max_running, when_full FROM running_limits;

-- name: delete_running_limit
DELETE FROM running_limits WHERE tenant = $1 AND whose = $2 AND name = $3;

-- name: limits_of_job
-- Each limit that counts a job, with the other jobs that have a place in it, and those that waited for one before it.
SELECT one.whose, one.name, one.max_running, one.when_full, one.of, used.running, used.before
FROM (
    SELECT DISTINCT ON (whose) whose, name, max_running, when_full,
        CASE whose WHEN 'agent' THEN $3 WHEN 'user' THEN $4 ELSE $5 END AS of
    FROM running_limits
    WHERE tenant = $1
        AND (whose, name) IN (
            ('agent', $3), ('agent', '*'), ('user', $4), ('user', CASE WHEN $4::text IS NOT NULL THEN '*' END),
            ('key', $5), ('key', CASE WHEN $5::text IS NOT NULL THEN '*' END)
        )
    ORDER BY whose, name = '*'
) AS one CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = 'running') AS running,
        count(*) FILTER (WHERE state = 'waiting' AND at IS NOT NULL) AS before
    FROM run_permits AS job
    WHERE job.tenant = $1 AND job.job_id <> $2
        AND one.of = CASE one.whose WHEN 'agent' THEN job.agent WHEN 'user' THEN job.user_id ELSE job.key_id END
) AS used
ORDER BY one.whose;

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
-- Jobs that wait for a pause that there is no more.
SELECT tenant, job_id, state, at, lane FROM run_permits AS job
WHERE state = 'paused' AND at IS NOT NULL AND NOT EXISTS (
    SELECT FROM pauses
    WHERE (kind, pauses.tenant, name) IN (
        ('tenant', job.tenant, job.tenant), ('lane', '', job.lane), ('agent', job.tenant, job.agent)
    )
)
ORDER BY since LIMIT $1;

-- name: tenants_that_wait
SELECT DISTINCT tenant FROM run_permits WHERE state = 'waiting' AND at IS NOT NULL;

-- name: waiting_jobs
SELECT tenant, job_id, state, at, lane, agent, user_id, key_id FROM run_permits
WHERE tenant = $1 AND state = 'waiting' AND at IS NOT NULL ORDER BY since, job_id LIMIT $2;

-- name: give_place
UPDATE run_permits SET state = 'running', told = false, since = clock_timestamp()
WHERE tenant = $1 AND job_id = $2 AND state = 'waiting' AND at = $3;

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
