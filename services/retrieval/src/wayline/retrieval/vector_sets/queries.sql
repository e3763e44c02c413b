-- name: sets
SELECT set_id, model, dimensions, state, automatic, overlap, queries, created_at, changed_at,
    (SELECT count(*) FROM pending_vectors AS pending WHERE tenant = $1 AND pending.set_id = sets.set_id) AS documents_waiting,
    (SELECT min(error) FROM pending_vectors AS pending WHERE tenant = $1 AND pending.set_id = sets.set_id) AS error,
    (SELECT count(*) FROM chunk_vectors AS held WHERE tenant = $1 AND held.set_id = sets.set_id) AS passages,
    (SELECT count(*) FROM chunks WHERE tenant = $1) AS passages_in_all
FROM vector_sets AS sets
WHERE tenant = $1 AND state <> 'gone'
ORDER BY set_id;

-- name: lock_sets
-- One change of a tenant's sets at a time.
SELECT pg_advisory_xact_lock(hashtext('retrieval.vector_sets'), hashtext($1));

-- name: find_set
SELECT * FROM vector_sets WHERE tenant = $1 AND state = ANY ($2::text[]) ORDER BY changed_at DESC LIMIT 1;

-- name: add_set
INSERT INTO vector_sets (tenant, model, asked_dimensions, state, automatic) VALUES ($1, $2, $3, 'building', $4)
RETURNING set_id;

-- name: set_state
UPDATE vector_sets SET state = $3, changed_at = now() WHERE tenant = $1 AND set_id = $2;

-- name: drop_next_set
UPDATE vector_sets SET state = 'gone', changed_at = now() WHERE tenant = $1 AND state IN ('building', 'shadow');

-- name: drop_old_sets
UPDATE vector_sets SET state = 'gone', changed_at = now() WHERE tenant = $1 AND state = 'old' AND set_id <> $2;

-- name: await_all
-- Every document of a tenant is looked at for a set; one that has all its vectors costs only that look.
INSERT INTO pending_vectors (tenant, set_id, document_id, sequence, claimed_until)
SELECT tenant, $2, document_id, sequence, now() FROM documents WHERE tenant = $1 AND status <> 'deleted'
ON CONFLICT (tenant, set_id, document_id) DO NOTHING;

-- name: choose_model
INSERT INTO vector_choices (tenant, model, asked_dimensions) VALUES ($1, $2, $3)
ON CONFLICT (tenant) DO UPDATE SET model = excluded.model, asked_dimensions = excluded.asked_dimensions;

-- name: tenants_to_rebuild
-- Tenants whose live set is not of the settings' model, who have chosen none, and have none of it under way.
SELECT tenant FROM vector_sets AS live
WHERE state = 'live' AND (model, asked_dimensions) IS DISTINCT FROM ($1, $2::integer)
    AND NOT EXISTS (SELECT FROM vector_choices AS chosen WHERE chosen.tenant = live.tenant)
    AND NOT EXISTS (
        SELECT FROM vector_sets AS next
        WHERE next.tenant = live.tenant AND next.state IN ('building', 'shadow')
            AND (NOT automatic OR (next.model, next.asked_dimensions) IS NOT DISTINCT FROM ($1, $2::integer))
    )
LIMIT 1000;

-- name: tenants_waiting
SELECT tenant FROM pending_vectors WHERE claimed_until < now() GROUP BY tenant ORDER BY random() LIMIT $1;

-- name: claim_pending
-- The live set's documents first: theirs are due since ever.
-- Chosen once: a plan that asked again for each row would claim several.
WITH next AS MATERIALIZED (
    SELECT set_id, document_id FROM pending_vectors
    WHERE tenant = $1 AND claimed_until < now()
    ORDER BY claimed_until, set_id, document_id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE pending_vectors AS pending SET claimed_until = now() + make_interval(secs => $2::double precision)
FROM next
WHERE tenant = $1 AND pending.set_id = next.set_id AND pending.document_id = next.document_id
RETURNING pending.set_id, pending.document_id, pending.sequence;

-- name: release_pending
UPDATE pending_vectors SET claimed_until = now() + make_interval(secs => $5::double precision), error = $6
WHERE tenant = $1 AND set_id = $2 AND document_id = $3 AND sequence = $4;

-- name: end_pending
-- A newer version of the document has another sequence, and waits on.
DELETE FROM pending_vectors WHERE tenant = $1 AND set_id = $2 AND document_id = $3 AND sequence = $4;

-- name: get_set
SELECT * FROM vector_sets WHERE tenant = $1 AND set_id = $2;

-- name: adopt_vectors
-- Vectors of this model that an earlier version stored with the passages.
INSERT INTO chunk_vectors (tenant, set_id, chunk_id, document_id, dimensions, embedding)
SELECT tenant, $2, chunk_id, document_id, dimensions, embedding FROM chunks
WHERE tenant = $1 AND document_id = $3 AND embedding IS NOT NULL AND embedding_model = $4
    AND vector_dims(embedding) = coalesce($5::integer, vector_dims(embedding))
ON CONFLICT DO NOTHING;

-- name: chunks_without_vectors
SELECT chunk_id, name, metadata -> 'headings' AS headings, text, text_sha256 FROM chunks
WHERE tenant = $1 AND document_id = $3 AND NOT EXISTS (
    SELECT FROM chunk_vectors AS held WHERE held.tenant = $1 AND held.set_id = $2 AND held.chunk_id = chunks.chunk_id
)
ORDER BY position
LIMIT $4;

-- name: add_vector
-- The lock keeps a new version of the document from taking the passage away in between.
INSERT INTO chunk_vectors (tenant, set_id, chunk_id, document_id, dimensions, embedding)
SELECT $1, $2, $3, $4, $5, $6 FROM (
    SELECT FROM chunks WHERE tenant = $1 AND chunk_id = $3 AND text_sha256 IS NOT DISTINCT FROM $7 FOR KEY SHARE
) AS passage
ON CONFLICT DO NOTHING;

-- name: note_dimensions
UPDATE vector_sets SET dimensions = $3 WHERE tenant = $1 AND set_id = $2 AND dimensions IS NULL;

-- name: whole_sets
-- Also one that was compared by a process that ended before it had switched.
SELECT * FROM vector_sets AS built
WHERE (state = 'building' OR (state = 'shadow' AND automatic)) AND NOT EXISTS (
    SELECT FROM pending_vectors AS pending WHERE pending.tenant = built.tenant AND pending.set_id = built.set_id
)
LIMIT 100;

-- name: note_overlap
UPDATE vector_sets SET overlap = $3, queries = $4, state = 'shadow', changed_at = now()
WHERE tenant = $1 AND set_id = $2 AND state = 'building';

-- name: nearest
-- {stored}, {asked}: the vectors as their index has them.
SELECT chunk_id FROM chunk_vectors
WHERE tenant = $1 AND set_id = $2 AND dimensions = {dimensions}
ORDER BY {stored} <=> {asked}
LIMIT $4;

-- name: last_queries
SELECT query FROM asked_queries WHERE tenant = $1 ORDER BY asked_at DESC LIMIT $2;

-- name: forget_old_sets
UPDATE vector_sets SET state = 'gone', changed_at = now()
WHERE state = 'old' AND changed_at < now() - make_interval(secs => $1::double precision);

-- name: gone_sets
SELECT tenant, set_id FROM vector_sets WHERE state = 'gone' LIMIT 100;

-- name: sweep_vectors
DELETE FROM chunk_vectors WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM chunk_vectors WHERE tenant = $1 AND set_id = $2 LIMIT $3
));

-- name: sweep_pending
DELETE FROM pending_vectors WHERE tenant = $1 AND set_id = $2;

-- name: forget_set
DELETE FROM vector_sets WHERE tenant = $1 AND set_id = $2 AND state = 'gone';
