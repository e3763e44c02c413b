-- name: begin_forget
-- No row: one of the same name is under way.
INSERT INTO forgets (
    tenant, forget_id, what, user_id, job_id, subject_type, subject_id, name_sha256, asked_by, look_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp() + make_interval(secs => $10))
ON CONFLICT (tenant, name_sha256) WHERE step <> 'done' DO NOTHING
RETURNING *;

-- name: open_forget
SELECT * FROM forgets WHERE tenant = $1 AND name_sha256 = $2 AND step <> 'done';

-- name: count_open
SELECT count(*) FROM forgets WHERE tenant = $1 AND step <> 'done' AND name_sha256 <> $2;

-- name: cut_submissions
-- Once.
UPDATE forgets SET submitted_upto = $3, look_at = clock_timestamp()
WHERE tenant = $1 AND forget_id = $2 AND submitted_upto IS NULL;

-- name: get_forget
SELECT * FROM forgets WHERE tenant = $1 AND forget_id = $2;

-- name: receipt_of
SELECT store, batch, counts, kept, erased_at FROM forget_counts
WHERE tenant = $1 AND forget_id = $2 ORDER BY store, batch;

-- name: open_users
SELECT tenant, user_id, submitted_upto FROM forgets WHERE user_id IS NOT NULL AND step <> 'done';

-- name: claim_due
-- Another router takes it up where this one dies.
UPDATE forgets SET look_at = clock_timestamp() + make_interval(secs => $1)
WHERE (tenant, forget_id) IN (
    -- By the index of those that are not done: `clock_timestamp()` may change from row to row.
    SELECT tenant, forget_id FROM forgets WHERE look_at <= now() AND look_at < 'infinity'
    ORDER BY look_at LIMIT $2 FOR UPDATE SKIP LOCKED
)
RETURNING *;

-- name: keep_claim
UPDATE forgets SET look_at = clock_timestamp() + make_interval(secs => $3)
WHERE tenant = $1 AND forget_id = $2 AND look_at < 'infinity';

-- name: wait_on
UPDATE forgets SET waits_for = $3, look_at = clock_timestamp() + make_interval(secs => $4)
WHERE tenant = $1 AND forget_id = $2;

-- name: list_jobs
-- Of the user, and all that these have started; or of one job, and those that read it for what lasts, or may have
-- summarised what it remembered: these hold its words.
WITH own AS (
    SELECT job_id FROM reservations WHERE tenant = $1 AND user_id = $3 AND NOT starts_with(job_id, 'tool/')
    UNION
    SELECT $4::text WHERE $4::text IS NOT NULL
    UNION
    SELECT read_by FROM session_turns WHERE tenant = $1 AND job_id = $4 AND read_by IS NOT NULL
    UNION
    SELECT summary.job_id FROM reservations AS named JOIN reservations AS summary USING (tenant, user_id)
    WHERE tenant = $1 AND named.job_id = $4 AND starts_with(summary.job_id, 'summary_')
        AND summary.reserved_at >= named.reserved_at
), below AS (
    SELECT child.job_id FROM reservations AS child
    WHERE child.tenant = $1 AND child.ancestors <> '{}' AND child.ancestors && ARRAY(SELECT job_id FROM own)
)
INSERT INTO forget_jobs (tenant, forget_id, job_id)
SELECT $1, $2, job_id FROM (SELECT job_id FROM own UNION SELECT job_id FROM below) AS found
ON CONFLICT (tenant, forget_id, job_id) DO NOTHING;

-- name: unbatched_jobs
SELECT job_id, coalesce(state = 'settled', true) AS settled,
    coalesce(reserved_at < clock_timestamp() - make_interval(secs => $3), true) AS old
FROM forget_jobs LEFT JOIN reservations USING (tenant, job_id)
WHERE tenant = $1 AND forget_id = $2 AND batch IS NULL ORDER BY job_id;

-- name: begin_erasing
WITH numbered AS (
    SELECT job_id, ((row_number() OVER (ORDER BY job_id) - 1) / $3::integer + 1 + (
        SELECT greatest(coalesce(max(batch), 0), 0) FROM forget_counts WHERE tenant = $1 AND forget_id = $2
    ))::integer AS number
    FROM forget_jobs WHERE tenant = $1 AND forget_id = $2 AND batch IS NULL
), batched AS (
    UPDATE forget_jobs SET batch = number FROM numbered
    WHERE tenant = $1 AND forget_id = $2 AND forget_jobs.job_id = numbered.job_id
)
UPDATE forgets SET step = 'erasing', waits_for = NULL, samples = $4::text[],
    jobs = (SELECT count(*) FROM forget_jobs WHERE tenant = $1 AND forget_id = $2)
WHERE tenant = $1 AND forget_id = $2 AND step = 'stopping';

-- name: batches_of
SELECT batch, array_agg(job_id ORDER BY job_id) AS jobs FROM forget_jobs
WHERE tenant = $1 AND forget_id = $2 AND batch IS NOT NULL GROUP BY batch ORDER BY batch;

-- name: jobs_erased
-- Those of the batches before the one that is worked on.
SELECT count(*) FROM forget_jobs
WHERE tenant = $1 AND forget_id = $2
    AND batch < (SELECT max(batch) FROM forget_counts WHERE tenant = $1 AND forget_id = $2);

-- name: count_of
SELECT counts, erased_at FROM forget_counts WHERE tenant = $1 AND forget_id = $2 AND store = $3 AND batch = $4;

-- name: note_count
INSERT INTO forget_counts (tenant, forget_id, store, batch, counts, kept)
VALUES ($1, $2, $3, $4, $5::jsonb, $6::jsonb) ON CONFLICT DO NOTHING;

-- name: note_erased
UPDATE forget_counts SET erased_at = clock_timestamp()
WHERE tenant = $1 AND forget_id = $2 AND store = $3 AND batch = $4 AND erased_at IS NULL;

-- name: begin_searching
UPDATE forgets SET step = 'searching', look_at = clock_timestamp()
WHERE tenant = $1 AND forget_id = $2 AND step = 'erasing';

-- name: begin_again
WITH anew AS (
    UPDATE forget_jobs SET batch = NULL WHERE tenant = $1 AND forget_id = $2
)
UPDATE forgets SET step = 'stopping', round = round + 1, left_over = $3::jsonb,
    look_at = clock_timestamp() + make_interval(secs => $4)
WHERE tenant = $1 AND forget_id = $2 AND step = 'searching';

-- name: end_forget
UPDATE forgets SET step = 'done', done_at = clock_timestamp(), user_id = NULL, subject_type = NULL, subject_id = NULL,
    samples = '{}', waits_for = NULL, left_over = $3::jsonb, look_at = clock_timestamp() + make_interval(secs => $4)
WHERE tenant = $1 AND forget_id = $2 AND step = 'searching';

-- name: end_sweep
WITH forgotten AS (
    DELETE FROM forget_jobs WHERE tenant = $1 AND forget_id = $2
)
UPDATE forgets SET look_at = 'infinity' WHERE tenant = $1 AND forget_id = $2;

-- name: sessions_of_jobs
SELECT DISTINCT session_id FROM session_turns
WHERE tenant = $1 AND job_id = ANY ($2::text[]) AND session_id IS NOT NULL;

-- name: count_own
SELECT
    (SELECT count(*) FROM latest_results WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3::text[])))
        AS latest_results,
    (SELECT count(*) FROM sessions WHERE tenant = $1 AND (user_id = $2 OR session_id = ANY ($4::text[]))) AS sessions,
    (SELECT count(*) FROM schedules WHERE tenant = $1 AND config::json #>> '{job,user_id}' = $2) AS schedules,
    (
        SELECT count(*) FROM firings WHERE tenant = $1 AND (
            job_id = ANY ($3::text[])
            OR uid IN (SELECT uid FROM schedules WHERE tenant = $1 AND config::json #>> '{job,user_id}' = $2)
        )
    ) AS firings,
    (
        SELECT count(*) FROM session_turns
        WHERE tenant = $1 AND remember_for IS NOT NULL AND (remember_for = $2 OR job_id = ANY ($3::text[]))
    ) AS unread_turns,
    (SELECT count(*) FROM extractions WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3::text[]))) AS extractions,
    (SELECT count(*) FROM memory_summaries WHERE tenant = $1 AND user_id = $2) AS wanted_summaries,
    (
        SELECT count(*) FROM reservations
        WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3::text[])) AND user_id IS NOT NULL
    ) AS reservation_names;

-- name: budgets_of_user
SELECT count(*) FROM budgets WHERE tenant = $1 AND user_id = $2;

-- name: sessions_to_erase
SELECT session_id FROM sessions WHERE tenant = $1 AND (user_id = $2 OR session_id = ANY ($3::text[]));

-- name: erase_results
DELETE FROM latest_results WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3::text[]));

-- name: erase_turns
-- The jobs keep that they have had a turn.
UPDATE session_turns SET session_id = NULL
WHERE tenant = $1 AND job_id = ANY ($2::text[]) AND session_id = ANY ($3::text[]);

-- name: erase_unread
UPDATE session_turns SET remember_for = NULL
WHERE tenant = $1 AND remember_for IS NOT NULL AND (remember_for = $2 OR job_id = ANY ($3::text[]));

-- name: erase_extractions
DELETE FROM extractions WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3::text[]));

-- name: erase_wanted_summary
DELETE FROM memory_summaries WHERE tenant = $1 AND user_id = $2;

-- name: erase_firings
DELETE FROM firings WHERE tenant = $1 AND (
    job_id = ANY ($3::text[])
    OR uid IN (SELECT uid FROM schedules WHERE tenant = $1 AND config::json #>> '{job,user_id}' = $2)
);

-- name: erase_schedules
DELETE FROM schedules WHERE tenant = $1 AND config::json #>> '{job,user_id}' = $2;

-- name: erase_names
-- What is reserved for a job that has not ended counts for its user's budgets until it has.
UPDATE reservations SET user_id = NULL
WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3::text[])) AND user_id IS NOT NULL AND state = 'settled';
