-- name: lock_webhooks
-- Of one tenant: what is counted is saved before another counts.
SELECT pg_advisory_xact_lock(hashtextextended('webhooks/' || $1, 0));

-- name: count_webhooks
SELECT count(*) FROM webhooks WHERE tenant = $1;

-- name: get_webhook
SELECT webhooks.*, counts.pending, counts.failed FROM webhooks, LATERAL (
    SELECT
        (SELECT count(*) FROM (SELECT FROM deliveries WHERE tenant = $1 AND uid = webhooks.uid AND state = 'pending'
            LIMIT $3) AS counted) AS pending,
        (SELECT count(*) FROM (SELECT FROM deliveries WHERE tenant = $1 AND uid = webhooks.uid AND state = 'failed'
            LIMIT $3) AS counted) AS failed
) AS counts WHERE tenant = $1 AND name = $2;

-- name: list_webhooks
SELECT webhooks.*, counts.pending, counts.failed FROM webhooks, LATERAL (
    SELECT
        (SELECT count(*) FROM (SELECT FROM deliveries WHERE tenant = $1 AND uid = webhooks.uid AND state = 'pending'
            LIMIT $4) AS counted) AS pending,
        (SELECT count(*) FROM (SELECT FROM deliveries WHERE tenant = $1 AND uid = webhooks.uid AND state = 'failed'
            LIMIT $4) AS counted) AS failed
) AS counts WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3;

-- name: work_due
-- $1: what is due then is prepared for now.
SELECT
    EXISTS (SELECT FROM deliveries WHERE state = 'pending' AND due_at <= $1) AS deliveries,
    EXISTS (SELECT FROM webhooks) AS webhooks;

-- name: any_webhook
SELECT EXISTS (SELECT FROM webhooks);

-- name: create_webhook
INSERT INTO webhooks (tenant, name, uid, config, key_id, sealed, enabled, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
ON CONFLICT DO NOTHING;

-- name: change_webhook
-- What is enabled again has not failed yet.
UPDATE webhooks SET config = $3, enabled = $4, version = version + 1, updated_at = $5, disabled_at = NULL,
    disabled_reason = NULL, failing_since = CASE WHEN enabled THEN failing_since END
WHERE tenant = $1 AND name = $2;

-- name: rotate_webhook
UPDATE webhooks SET former_key_id = key_id, former_sealed = sealed, former_until = $5, key_id = $3, sealed = $4,
    version = version + 1, updated_at = $6
WHERE tenant = $1 AND name = $2;

-- name: delete_webhook
DELETE FROM webhooks WHERE tenant = $1 AND name = $2 RETURNING uid;

-- name: webhooks_of_older_keys
SELECT tenant, name, uid, key_id, sealed, former_key_id, former_sealed FROM webhooks
WHERE (key_id = ANY ($1::text[]) OR former_key_id = ANY ($1::text[])) AND (tenant, name) > ($3, $4)
ORDER BY tenant, name LIMIT $2;

-- name: seal_webhook
UPDATE webhooks SET key_id = $4, sealed = $5, former_key_id = $6, former_sealed = $7
WHERE tenant = $1 AND name = $2 AND sealed = $3;

-- name: subscriptions
-- All that may want an event of these tenants, with their tenants.
SELECT tenant, name, uid, config, created_at FROM webhooks WHERE tenant = ANY ($1::text[]) AND enabled;

-- name: add_deliveries
-- The same event again is the same delivery. What is of a webhook that was deleted meanwhile is nobody's.
INSERT INTO deliveries (tenant, id, uid, type, job_id, user_id, url, body, occurred_at, created_at, due_at)
SELECT one.tenant, one.id, one.uid, one.type, one.job_id, one.user_id, one.url, one.body, one.occurred_at, $10, $10
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::timestamptz[]
) AS one (tenant, id, uid, type, job_id, user_id, url, body, occurred_at)
WHERE EXISTS (
    SELECT FROM webhooks WHERE webhooks.tenant = one.tenant AND webhooks.uid = one.uid FOR KEY SHARE
)
ON CONFLICT DO NOTHING;

-- name: add_claimed_delivery
INSERT INTO deliveries (tenant, id, uid, type, body, occurred_at, created_at, due_at, claim, retried)
VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8, false);

-- name: next_due
SELECT min(due_at) FROM deliveries WHERE state = 'pending';

-- name: lock_claims
SELECT pg_advisory_xact_lock(hashtextextended('webhook claims', 0));

-- name: claim_deliveries
-- The oldest due ones of each enabled webhook, as far as its share and its tenant's are not taken; of tenants in turns.
WITH RECURSIVE waiting AS (
    (SELECT tenant, uid FROM deliveries WHERE state = 'pending' ORDER BY tenant, uid LIMIT 1)
    UNION ALL
    SELECT next.tenant, next.uid FROM waiting, LATERAL (
        SELECT tenant, uid FROM deliveries
        WHERE state = 'pending' AND (tenant, uid) > (waiting.tenant, waiting.uid) ORDER BY tenant, uid LIMIT 1
    ) AS next
),
sending AS (
    SELECT tenant, uid, count(*) AS taken FROM deliveries
    WHERE state = 'pending' AND claim IS NOT NULL AND due_at > $1 GROUP BY tenant, uid
),
due AS (
    SELECT one.tenant, one.id, one.due_at, one.turn, row_number() OVER (
        PARTITION BY one.tenant ORDER BY one.turn, one.due_at, one.id
    ) + coalesce((SELECT sum(taken) FROM sending WHERE sending.tenant = one.tenant), 0) AS place
    FROM waiting JOIN webhooks ON webhooks.tenant = waiting.tenant AND webhooks.uid = waiting.uid AND webhooks.enabled,
    LATERAL (
        SELECT tenant, id, due_at, row_number() OVER (ORDER BY due_at, id) AS turn FROM deliveries
        WHERE state = 'pending' AND tenant = waiting.tenant AND uid = waiting.uid AND due_at <= $1
        ORDER BY due_at, id
        LIMIT greatest(0, $4 - coalesce(
            (SELECT taken FROM sending WHERE sending.tenant = waiting.tenant AND sending.uid = waiting.uid), 0
        ))
    ) AS one
),
chosen AS (
    SELECT tenant, id FROM due WHERE place <= $5 ORDER BY place, due_at, id LIMIT $6
)
UPDATE deliveries SET claim = $2, due_at = $3
FROM chosen, webhooks
WHERE deliveries.tenant = chosen.tenant AND deliveries.id = chosen.id AND deliveries.state = 'pending'
    AND webhooks.tenant = deliveries.tenant AND webhooks.uid = deliveries.uid
RETURNING deliveries.*, webhooks.name, webhooks.config, webhooks.key_id, webhooks.sealed, webhooks.former_key_id,
    webhooks.former_sealed, webhooks.former_until;

-- name: claimed_delivery
SELECT deliveries.*, webhooks.name, webhooks.config, webhooks.key_id, webhooks.sealed, webhooks.former_key_id,
    webhooks.former_sealed, webhooks.former_until
FROM deliveries JOIN webhooks ON webhooks.tenant = deliveries.tenant AND webhooks.uid = deliveries.uid
WHERE deliveries.tenant = $1 AND deliveries.id = $2 AND deliveries.claim = $3;

-- name: end_attempt
-- Only by the process that claimed it, and of the answers the last few.
UPDATE deliveries SET state = $4, attempts = attempts + 1, due_at = $5, claim = NULL, reason = $7, ended_at = $8,
    answers = (
        SELECT jsonb_agg(answer ORDER BY place) FROM (
            SELECT * FROM jsonb_array_elements(answers || jsonb_build_array($6::jsonb)) WITH ORDINALITY
                AS one (answer, place)
            ORDER BY place DESC LIMIT $9
        ) AS last
    )
WHERE tenant = $1 AND id = $2 AND claim = $3 AND state = 'pending'
RETURNING number;

-- name: note_success
UPDATE webhooks SET failing_since = NULL WHERE tenant = $1 AND uid = $2 AND failing_since IS NOT NULL;

-- name: note_failure
UPDATE webhooks SET failing_since = coalesce(failing_since, $3) WHERE tenant = $1 AND uid = $2
RETURNING failing_since, enabled;

-- name: disable_webhook
UPDATE webhooks SET enabled = false, disabled_at = $3, disabled_reason = $4, version = version + 1, updated_at = $3
WHERE tenant = $1 AND uid = $2 AND enabled RETURNING name;

-- name: give_up_deliveries
UPDATE deliveries SET state = 'failed', claim = NULL, reason = $4, ended_at = $3
WHERE tenant = $1 AND uid = $2 AND state = 'pending';

-- name: too_many_pending
SELECT waiting.tenant, waiting.uid FROM (SELECT DISTINCT tenant, uid FROM deliveries WHERE state = 'pending') AS waiting
JOIN webhooks ON webhooks.tenant = waiting.tenant AND webhooks.uid = waiting.uid AND webhooks.enabled
WHERE (SELECT count(*) FROM deliveries WHERE state = 'pending' AND tenant = waiting.tenant AND uid = waiting.uid) > $1;

-- name: forget_deliveries
DELETE FROM deliveries WHERE (tenant, id) IN (
    SELECT tenant, id FROM deliveries WHERE created_at < $1 LIMIT $2
);

-- name: list_deliveries
SELECT deliveries.*, webhooks.config, webhooks.name FROM webhooks JOIN deliveries
    ON deliveries.tenant = webhooks.tenant AND deliveries.uid = webhooks.uid
WHERE webhooks.tenant = $1 AND webhooks.name = $2 AND ($3::text IS NULL OR state = $3)
    AND ($4::text IS NULL OR job_id = $4) AND ($5::bigint IS NULL OR number < $5)
ORDER BY number DESC LIMIT $6;

-- name: get_delivery
SELECT deliveries.*, webhooks.config, webhooks.name FROM webhooks JOIN deliveries
    ON deliveries.tenant = webhooks.tenant AND deliveries.uid = webhooks.uid
WHERE webhooks.tenant = $1 AND webhooks.name = $2 AND deliveries.id = $3;

-- name: redeliver_one
-- One that is pending is tried now; one that is being sent is left to its sender.
UPDATE deliveries SET state = 'pending', retried = true, attempts = 0, due_at = $4, reason = '', ended_at = NULL
FROM webhooks
WHERE webhooks.tenant = $1 AND webhooks.name = $2 AND deliveries.tenant = $1 AND deliveries.uid = webhooks.uid
    AND deliveries.id = $3 AND (claim IS NULL OR due_at <= $4);

-- name: redeliver_failed
UPDATE deliveries SET state = 'pending', retried = true, attempts = 0, due_at = $4, reason = '', ended_at = NULL
WHERE tenant = $1 AND id IN (
    SELECT deliveries.id FROM webhooks JOIN deliveries
        ON deliveries.tenant = webhooks.tenant AND deliveries.uid = webhooks.uid
    WHERE webhooks.tenant = $1 AND webhooks.name = $2 AND state = 'failed'
        AND ($3::timestamptz IS NULL OR occurred_at >= $3)
    ORDER BY occurred_at LIMIT $5
);

-- name: count_erasable
SELECT
    (SELECT count(*) FROM deliveries WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3::text[])))
        AS webhook_deliveries;

-- name: rows_with_samples
SELECT count(*) FROM deliveries WHERE tenant = $1 AND EXISTS (
    SELECT FROM unnest($2::text[]) AS sample
    WHERE strpos(body, sample) > 0 OR strpos(answers::text, sample) > 0
);

-- name: erase_deliveries
DELETE FROM deliveries WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3::text[]));
