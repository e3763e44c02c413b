-- name: claim_submission
-- Two requests at once: the second waits for the first to commit, and inserts nothing.
INSERT INTO submissions (tenant, job_id, idempotency_key, content_hash)
VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING;

-- name: submission_by_key
SELECT job_id, content_hash, accepted_at, extract(epoch FROM clock_timestamp() - created_at)::float AS age_s
FROM submissions WHERE tenant = $1 AND idempotency_key = $2;

-- name: submission_by_job
SELECT job_id, content_hash, accepted_at, extract(epoch FROM clock_timestamp() - created_at)::float AS age_s
FROM submissions WHERE tenant = $1 AND job_id = $2;

-- name: accept_submission
INSERT INTO submissions (tenant, job_id, idempotency_key, content_hash, agent, session_id, user_id, accepted_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, now())
ON CONFLICT (tenant, job_id) DO UPDATE
SET accepted_at = coalesce(submissions.accepted_at, now()),
    agent = excluded.agent, session_id = excluded.session_id, user_id = excluded.user_id;

-- name: queued_submission
-- A log is kept for 30 days: an older submission without one is over, not queued.
SELECT job_id, agent, session_id, user_id, accepted_at
FROM submissions
WHERE tenant = $1 AND job_id = $2 AND accepted_at > now() - interval '29 days';

-- name: note_request
-- What nobody sends again is forgotten beside it, a few rows at a time.
WITH forgotten AS (
    DELETE FROM resendable_requests WHERE (tenant, key_id, digest) IN (
        SELECT tenant, key_id, digest FROM resendable_requests
        WHERE tenant = $1 AND asked_at < now() - interval '10 minutes' AND NOT (key_id = $2 AND digest = $3)
        LIMIT 100 FOR UPDATE SKIP LOCKED
    )
)
INSERT INTO resendable_requests (tenant, key_id, digest, job_id) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant, key_id, digest) DO UPDATE SET job_id = excluded.job_id, asked_at = now();

-- name: requested_job
SELECT job_id FROM resendable_requests
WHERE tenant = $1 AND key_id = $2 AND digest = $3 AND asked_at > now() - interval '10 minutes';

-- name: was_asked_again
SELECT EXISTS (
    SELECT FROM resendable_requests
    WHERE tenant = $1 AND key_id = $2 AND digest = $3 AND job_id = $4
        AND asked_at > clock_timestamp() - make_interval(secs => $5)
);

-- name: erase_requests
DELETE FROM resendable_requests WHERE tenant = $1 AND job_id = ANY ($2);

-- name: dismiss_letter
-- As long as the stream keeps letters.
WITH forgotten AS (
    DELETE FROM dismissed_letters WHERE tenant = $1 AND sequence <> $2 AND dismissed_at < now() - interval '30 days'
)
INSERT INTO dismissed_letters (tenant, sequence, code, subject, letter_reason, reason, dismissed_by)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (tenant, sequence) DO UPDATE SET reason = excluded.reason, dismissed_by = excluded.dismissed_by
RETURNING sequence, code, subject, letter_reason, reason, dismissed_by, dismissed_at;

-- name: dismissed_letters
SELECT sequence, code, subject, letter_reason, reason, dismissed_by, dismissed_at FROM dismissed_letters
WHERE tenant = $1 AND ($3::timestamptz IS NULL OR (dismissed_at, sequence) < ($3, $4::bigint))
ORDER BY dismissed_at DESC, sequence DESC LIMIT $2;

-- name: begin_redrive
INSERT INTO redrives (tenant, redrive_id, fingerprint, redriven_by, jobs) VALUES ($1, $2, $3, $4, $5);

-- name: finish_redrive
UPDATE redrives SET forked = $3, already = $4, refused = $5, finished_at = now() WHERE tenant = $1 AND redrive_id = $2;

-- name: list_redrives
SELECT redrive_id, fingerprint, redriven_by, jobs, forked, already, refused, begun_at, finished_at FROM redrives
WHERE tenant = $1 AND ($3::timestamptz IS NULL OR (begun_at, redrive_id) < ($3, $4))
ORDER BY begun_at DESC, redrive_id DESC LIMIT $2;

-- name: wait_for_change
SET LOCAL lock_timeout = '10s';

-- name: lock_change
SELECT pg_advisory_xact_lock(hashtextextended($1, 0));

-- name: find_key
SELECT id, hash, tenant, name, scopes, user_id, limits,
    (SELECT tenant_limits.limits FROM tenant_limits WHERE tenant_limits.tenant = api_keys.tenant) AS tenant_limits,
    last_used_at IS NULL OR last_used_at < now() - interval '1 minute' AS is_unused
FROM api_keys
WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now());

-- name: any_key
-- Also a revoked one: taking back the last key must not open the door.
SELECT EXISTS (SELECT FROM api_keys WHERE NOT machine);

-- name: any_operator_key
SELECT EXISTS (
    SELECT FROM api_keys
    WHERE 'operator' = ANY (scopes) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
);

-- name: use_key
UPDATE api_keys SET last_used_at = now() WHERE id = $1;

-- name: count_keys
SELECT count(*) FROM api_keys
WHERE tenant = $1 AND NOT machine AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now());

-- name: get_key
SELECT id, tenant, name, scopes, user_id, limits, created_at, expires_at, last_used_at, revoked_at FROM api_keys WHERE id = $1;

-- name: list_keys
SELECT id, tenant, name, scopes, user_id, limits, created_at, expires_at, last_used_at, revoked_at FROM api_keys
WHERE tenant = $1 AND ($2 OR (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())))
    AND ($4::timestamptz IS NULL OR (created_at, id) < ($4, $5))
ORDER BY created_at DESC, id DESC LIMIT $3;

-- name: keep_machine_key
-- One that was revoked works again: the operator who starts the platform has the password of its database anyway.
WITH others AS (
    DELETE FROM api_keys WHERE machine AND tenant = $3 AND id <> $1
)
INSERT INTO api_keys (id, hash, tenant, name, scopes, machine) VALUES ($1, $2, $3, 'this machine', $4, true)
ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, scopes = excluded.scopes, revoked_at = NULL;

-- name: add_key
INSERT INTO api_keys (id, hash, tenant, name, scopes, expires_at, user_id, limits)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: change_key
UPDATE api_keys SET name = $3, limits = $4 WHERE id = $1 AND tenant = $2;

-- name: revoke_key
UPDATE api_keys SET revoked_at = now() WHERE id = $1 AND tenant = $2 AND revoked_at IS NULL;

-- name: put_limits
INSERT INTO tenant_limits (tenant, limits) VALUES ($1, $2)
ON CONFLICT (tenant) DO UPDATE SET limits = excluded.limits, saved_at = now();

-- name: get_limits
SELECT limits FROM tenant_limits WHERE tenant = $1;

-- name: delete_limits
DELETE FROM tenant_limits WHERE tenant = $1 RETURNING tenant;

-- name: lease_tokens
-- Nobody takes more than half of what is there, so that a bucket that runs dry is shared by all gateways. $4: how long a
-- token takes to come; $6: the time, where it is not the clock's.
INSERT INTO token_buckets AS kept (tenant, bucket, full_at, granted)
VALUES (
    $1, $2, coalesce($6::timestamptz, clock_timestamp())
    + make_interval(secs => least($3::integer, ($5::integer + 1) / 2) * $4::float), least($3, ($5 + 1) / 2)
)
ON CONFLICT (tenant, bucket) DO UPDATE SET (full_at, granted) = (
    SELECT counted_from + make_interval(secs => given * $4), given
    FROM (
        SELECT counted_from, least(
            $3, ceil(floor(greatest(0, $5 - extract(epoch FROM counted_from - asked_at)::float / $4 + 1e-6)) / 2)
        )::integer AS given
        FROM (SELECT coalesce($6::timestamptz, clock_timestamp()) AS asked_at) AS clock,
            -- Empty at most: a smaller rate that was raised meanwhile leaves no debt.
            LATERAL (SELECT least(
                greatest(kept.full_at, asked_at), asked_at + make_interval(secs => $5 * $4)
            ) AS counted_from) AS debt
    ) AS shared
)
RETURNING granted,
    greatest(0, $5 - extract(epoch FROM full_at - coalesce($6, clock_timestamp()))::float / $4) AS tokens_left;

-- name: give_tokens_back
UPDATE token_buckets SET full_at = full_at - make_interval(secs => $3) WHERE tenant = $1 AND bucket = $2;

-- name: forget_full_buckets
DELETE FROM token_buckets WHERE (tenant, bucket) IN (
    SELECT tenant, bucket FROM token_buckets WHERE full_at < now() - interval '1 hour' LIMIT 1000 FOR UPDATE SKIP LOCKED
);

-- name: put_prompt
-- A tenant that has as many as it may can still change one.
INSERT INTO prompts (tenant, name, prompt)
SELECT $1, $2, $3
WHERE (SELECT count(*) FROM prompts WHERE tenant = $1 AND name <> $2) < $4
ON CONFLICT (tenant, name) DO UPDATE SET prompt = excluded.prompt, saved_at = now()
RETURNING name, prompt, saved_at;

-- name: get_prompt
SELECT name, prompt, saved_at FROM prompts WHERE tenant = $1 AND name = $2;

-- name: list_prompts
SELECT name, prompt, saved_at FROM prompts WHERE tenant = $1 ORDER BY name;

-- name: delete_prompt
DELETE FROM prompts WHERE tenant = $1 AND name = $2 RETURNING name;

-- name: count_submissions
SELECT
    (SELECT count(*) FROM submissions WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3::text[]))) AS submissions,
    (SELECT count(*) FROM dismissed_letters WHERE tenant = $1 AND split_part(subject, '.', 3) = ANY ($3::text[]))
        AS dismissed_letters;

-- name: keys_of_user
SELECT count(*) FROM api_keys WHERE tenant = $1 AND user_id = $2;

-- name: erase_submissions
-- What an idempotency key of theirs stood for is forgotten, too: the same key begins a new job.
DELETE FROM submissions WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3::text[]));

-- name: erase_dismissed_letters
DELETE FROM dismissed_letters WHERE tenant = $1 AND split_part(subject, '.', 3) = ANY ($2::text[]);

-- name: begin_action
-- What ended 30 days ago is forgotten beside it.
WITH forgotten AS (
    DELETE FROM job_actions
    WHERE tenant = $1 AND action_id <> $2 AND state <> 'running' AND moved_at < now() - interval '30 days'
)
INSERT INTO job_actions (tenant, action_id, asked, asked_by, scopes, user_id, key_id)
VALUES ($1, $2, $3::text::jsonb, $4, $5, $6, $7)
ON CONFLICT DO NOTHING;

-- name: running_actions
SELECT count(*) FROM job_actions WHERE tenant = $1 AND state = 'running';

-- name: get_action
SELECT action_id, asked, asked_by, user_id, state, counts, refused, waits_for, begun_at, moved_at, finished_at
FROM job_actions WHERE tenant = $1 AND action_id = $2;

-- name: list_actions
SELECT action_id, asked, asked_by, user_id, state, counts, refused, waits_for, begun_at, moved_at, finished_at
FROM job_actions
WHERE tenant = $1 AND ($2::text IS NULL OR user_id = $2)
    AND ($4::timestamptz IS NULL OR (begun_at, action_id) < ($4, $5))
ORDER BY begun_at DESC, action_id DESC LIMIT $3;

-- name: stop_action
UPDATE job_actions SET state = 'stopped', moved_at = clock_timestamp(), finished_at = clock_timestamp()
WHERE tenant = $1 AND action_id = $2 AND state = 'running';

-- name: take_action
-- That which has waited longest: no tenant's many jobs keep another's waiting.
UPDATE job_actions SET holder = $1, free_at = clock_timestamp() + make_interval(secs => $2)
WHERE (tenant, action_id) IN (
    SELECT tenant, action_id FROM job_actions
    WHERE state = 'running' AND free_at <= clock_timestamp()
    ORDER BY moved_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING tenant, action_id, asked, asked_by, scopes, user_id, key_id, cursor, handled, counts, refused, begun_at;

-- name: move_action
-- Not where another gateway has taken it since, or it was stopped.
UPDATE job_actions SET
    state = $4, cursor = $5, handled = $6, counts = $7::text::jsonb, refused = $8::text::jsonb, waits_for = $9,
    moved_at = clock_timestamp(), finished_at = CASE WHEN $4 <> 'running' THEN clock_timestamp() END,
    free_at = clock_timestamp() + make_interval(secs => $10)
WHERE tenant = $1 AND action_id = $2 AND holder = $3 AND state = 'running';

-- name: erase_actions
-- Which jobs were meant, whose, and which were refused.
DELETE FROM job_actions
WHERE tenant = $1 AND (
    user_id = $2 OR asked #>> '{filter,user_id}' = $2 OR asked -> 'job_ids' ?| $3::text[] OR handled && $3
    OR EXISTS (SELECT FROM jsonb_array_elements(refused) AS one WHERE one ->> 'job_id' = ANY ($3))
);

-- name: begin_audited
WITH forgotten AS (
    DELETE FROM audit WHERE (tenant, id) IN (
        SELECT tenant, id FROM audit WHERE tenant = $1 AND at < now() - interval '400 days' ORDER BY id LIMIT 10
    )
)
INSERT INTO audit (tenant, kind, name, operation, by, key_id, is_operator, user_id, trace_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
RETURNING id;

-- name: move_audited
UPDATE audit SET tenant = $3 WHERE tenant = $1 AND id = $2 AND outcome IS NULL;

-- name: end_audited
UPDATE audit SET name = $3, before = $4, after = $5, detail = $6, outcome = $7, code = $8
WHERE tenant = $1 AND id = $2 AND outcome IS NULL;

-- name: list_audited
SELECT id, kind, name, operation, by, key_id, is_operator, user_id, trace_id, at, before, after, detail, outcome, code
FROM audit
WHERE tenant = $1 AND ($2::bigint IS NULL OR id < $2) AND ($3::text IS NULL OR kind = $3)
    AND ($4::text IS NULL OR name = $4) AND ($5::text IS NULL OR by = $5) AND ($6::text IS NULL OR key_id = $6)
    AND ($7::timestamptz IS NULL OR at >= $7) AND ($8::timestamptz IS NULL OR at < $8)
ORDER BY id DESC LIMIT $9;

-- name: erase_audited_names
UPDATE audit SET by = 'a forgotten user', user_id = NULL WHERE tenant = $1 AND user_id = $2;
