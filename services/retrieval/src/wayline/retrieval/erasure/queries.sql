-- name: count_of_documents
SELECT count(*) FROM chunks WHERE tenant = $1 AND document_id = ANY ($2::text[]);

-- name: count_remembered
SELECT
    (
        SELECT count(*) FROM facts WHERE tenant = $1 AND (
            user_id = $2 OR owner = ANY ($3::text[]) OR (other_type = $4 AND other_id = $5) OR job_id = ANY ($6::text[])
        )
    ) AS facts,
    (SELECT count(*) FROM fact_writes WHERE tenant = $1 AND owner = ANY ($3::text[])) AS fact_writes,
    (
        SELECT count(*) FROM fact_conversations
        WHERE tenant = $1 AND (job_id = ANY ($6::text[]) OR conversation = ANY ($6::text[]))
    ) AS fact_conversations,
    (SELECT count(*) FROM subjects WHERE tenant = $1 AND type = $4 AND id = $5) AS subjects,
    (SELECT count(*) FROM task_edges WHERE tenant = $1 AND source_job = ANY ($6::text[])) AS task_edges,
    (SELECT count(*) FROM tasks WHERE tenant = $1 AND source_job = ANY ($6::text[])) AS tasks,
    (SELECT count(*) FROM task_graph_jobs WHERE tenant = $1 AND job_id = ANY ($6::text[])) AS planned_jobs;

-- name: facts_of_jobs
SELECT DISTINCT fact_id FROM facts WHERE tenant = $1 AND job_id = ANY ($2::text[]);

-- name: erase_conversations
-- In which facts that stay were used.
DELETE FROM fact_conversations WHERE tenant = $1 AND (job_id = ANY ($2::text[]) OR conversation = ANY ($2::text[]));

-- name: erase_edges
DELETE FROM task_edges WHERE tenant = $1 AND source_job = ANY ($2::text[]);

-- name: erase_tasks
DELETE FROM tasks WHERE tenant = $1 AND source_job = ANY ($2::text[]);

-- name: erase_planned
DELETE FROM task_graph_jobs WHERE tenant = $1 AND job_id = ANY ($2::text[]);

-- name: passages_with_samples
SELECT count(*) FROM chunks WHERE tenant = $1 AND EXISTS (
    SELECT FROM unnest($2::text[]) AS sample WHERE position(sample IN text) > 0
);

-- name: erase_queries
-- No query says whose it was.
DELETE FROM asked_queries WHERE tenant = $1;
