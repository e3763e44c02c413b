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

-- name: find_key
SELECT id, hash, tenant, name, scopes
FROM api_keys
WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now());

-- name: any_key
-- Also a revoked one: taking back the last key must not open the door.
SELECT EXISTS (SELECT FROM api_keys);

-- name: add_key
INSERT INTO api_keys (id, hash, tenant, name, scopes, expires_at) VALUES ($1, $2, $3, $4, $5, $6);

-- name: revoke_key
UPDATE api_keys SET revoked_at = now() WHERE id = $1 AND tenant = $2 AND revoked_at IS NULL;
