-- name: lock_graph
SELECT pg_advisory_xact_lock(hashtextextended('task graph ' || $1::text, 0));

-- name: begin_job
INSERT INTO task_graph_jobs (tenant, job_id) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: forget_old_jobs
-- Longer than any message about a job can come again.
DELETE FROM task_graph_jobs WHERE tenant = $1 AND stored_at < now() - interval '60 days';

-- name: put_tasks
-- What strangers said of a task never takes the place of what is trusted.
INSERT INTO tasks (tenant, task_key, name, words, source_job, trust, document_ids)
SELECT $1, given.task_key, given.name, string_to_array(given.words, ' '), $5, $6, $7::text[]
FROM unnest($2::text[], $3::text[], $4::text[]) AS given (task_key, name, words)
ON CONFLICT (tenant, task_key) DO UPDATE SET
    seen_at = clock_timestamp(),
    name = CASE WHEN tasks.trust < excluded.trust THEN tasks.name ELSE excluded.name END,
    source_job = CASE WHEN tasks.trust < excluded.trust THEN tasks.source_job ELSE excluded.source_job END,
    document_ids = CASE WHEN tasks.document_ids = '{}' THEN '{}' ELSE excluded.document_ids END,
    trust = least(tasks.trust, excluded.trust);

-- name: may_be_told
-- In all that reads tasks: those whose documents their reader may find.
AND NOT EXISTS (
    SELECT FROM documents
    WHERE documents.tenant = $1 AND documents.document_id = ANY (tasks.document_ids)
        AND NOT (documents.audience IS NULL OR documents.audience && $2::text[])
);

-- name: put_edges
INSERT INTO task_edges (tenant, task_key, needs_key, weight, kind, quote, document_id, source_job, trust)
SELECT $1, given.task_key, given.needs_key, given.weight, given.kind, given.quote, given.document_id, $8, $9
FROM unnest($2::text[], $3::text[], $4::real[], $5::text[], $6::text[], $7::text[])
    AS given (task_key, needs_key, weight, kind, quote, document_id)
ON CONFLICT (tenant, task_key, needs_key) DO UPDATE SET
    jobs = task_edges.jobs + 1,
    seen_at = clock_timestamp(),
    (weight, kind, quote, document_id, source_job) = (
        SELECT kept.weight, kept.kind, kept.quote, kept.document_id, kept.source_job
        FROM (VALUES
            (task_edges.trust < excluded.trust, task_edges.weight, task_edges.kind, task_edges.quote,
             task_edges.document_id, task_edges.source_job),
            (task_edges.trust >= excluded.trust, excluded.weight, excluded.kind, excluded.quote,
             excluded.document_id, excluded.source_job)
        ) AS kept (counts, weight, kind, quote, document_id, source_job)
        WHERE kept.counts
    ),
    trust = least(task_edges.trust, excluded.trust);

-- name: drop_oldest_tasks
DELETE FROM tasks WHERE tenant = $1 AND task_key IN (
    SELECT task_key FROM tasks WHERE tenant = $1 ORDER BY seen_at DESC, task_key OFFSET $2
);

-- name: drop_oldest_edges
DELETE FROM task_edges WHERE tenant = $1 AND (task_key, needs_key) IN (
    SELECT task_key, needs_key FROM task_edges WHERE tenant = $1
    ORDER BY seen_at DESC, task_key, needs_key OFFSET $2
);

-- name: count_tasks
SELECT count(*) FROM tasks WHERE tenant = $1 {may_be_told};

-- name: find_tasks
SELECT task_key FROM tasks
WHERE tenant = $1 AND (task_key = ANY($3::text[]) OR words && $4::text[]) {may_be_told}
ORDER BY
    (task_key = ANY($3::text[])) DESC,
    cardinality(ARRAY(SELECT unnest(words) INTERSECT SELECT unnest($4::text[]))) DESC,
    seen_at DESC, task_key
LIMIT $5;

-- name: newest_tasks
SELECT task_key FROM tasks WHERE tenant = $1 {may_be_told} ORDER BY seen_at DESC, task_key LIMIT $3;

-- name: edges_at
SELECT task_key, needs_key, weight, kind, quote, document_id, source_job, jobs, trust FROM task_edges
WHERE tenant = $1 AND (task_key = ANY($2::text[]) OR needs_key = ANY($2::text[]))
    -- What a document says is told to those alone who may find it.
    AND NOT EXISTS (
        SELECT FROM documents
        WHERE documents.tenant = $1 AND documents.document_id = task_edges.document_id
            AND NOT (audience IS NULL OR audience && $4::text[])
    )
ORDER BY weight DESC, task_key, needs_key
LIMIT $3;

-- name: read_tasks
SELECT task_key, name, source_job, seen_at, trust FROM tasks
WHERE tenant = $1 AND task_key = ANY($3::text[]) {may_be_told}
ORDER BY seen_at DESC, task_key;

-- name: documents_of_name
SELECT document_id FROM documents
WHERE tenant = $1 AND name = $2 AND status <> 'deleted'
    AND (audience IS NULL OR audience && $3::text[]) AND (valid_until IS NULL OR valid_until > now())
ORDER BY document_id
LIMIT $4;

-- name: document_of_context
SELECT name, trust, coalesce(chunks_total, 0) AS passages_total FROM documents
WHERE tenant = $1 AND document_id = $2 AND status <> 'deleted'
    AND (audience IS NULL OR audience && $3::text[]) AND (valid_until IS NULL OR valid_until > now());

-- name: position_of_chunk
SELECT position FROM chunks WHERE tenant = $1 AND document_id = $2 AND chunk_id = $3;

-- name: passages_between
SELECT chunk_id, position, text FROM chunks
WHERE tenant = $1 AND document_id = $2 AND position BETWEEN $3 AND $4
ORDER BY position;
