-- name: accept_document
-- Says queued for a new document or a newer version, and leaves alone what has got further. While the version before
-- can be found, nobody sees it who might not: who may find it is at the end of indexing what the newer one says. $13: it is the same version once more.
INSERT INTO documents (
    tenant, document_id, name, media_type, size_bytes, metadata, trust, status, collection, audience, valid_until
)
VALUES ($1, $2, $3, $4, $5, $6, $8, 'queued', $10, $11::text[], $12)
ON CONFLICT (tenant, document_id) DO UPDATE SET
    name = CASE WHEN $13::boolean THEN documents.name ELSE excluded.name END, media_type = excluded.media_type, size_bytes = excluded.size_bytes,
    (metadata, collection, trust, audience, valid_until) = (SELECT * FROM described_now(
        $13, has_content($1, $2), documents.changed, $9::text[], documents.metadata, excluded.metadata,
        documents.collection, excluded.collection, documents.trust, excluded.trust,
        documents.audience, excluded.audience, documents.valid_until, excluded.valid_until
    )),
    status = 'queued', chunks_done = 0, chunks_total = NULL, error = NULL
WHERE CASE documents.status
    WHEN 'deleted' THEN $7::bigint IS NULL OR $7 > documents.deleted_sequence
    ELSE $7 > documents.sequence
END;

-- name: begin_indexing
-- Takes a document for the message with this sequence; no row comes back when a newer message, a deletion after it or
-- an earlier delivery of it was there first. $15: what the message says of the document; $16: it says nothing.
INSERT INTO documents (
    tenant, document_id, name, media_type, size_bytes, metadata, embedding_model, sequence, status, payloads, trust,
    collection, valid_until, audience
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'indexing', $10::text[], $11, $12, $13, $14::text[])
ON CONFLICT (tenant, document_id) DO UPDATE SET
    name = excluded.name, media_type = excluded.media_type, size_bytes = excluded.size_bytes,
    embedding_model = excluded.embedding_model, sequence = excluded.sequence,
    changed = ARRAY(SELECT unnest(documents.changed) EXCEPT SELECT unnest($15::text[])),
    (metadata, collection, trust, audience, valid_until) = (SELECT * FROM described_now(
        $16::boolean, has_content($1, $2), documents.changed, $15, documents.metadata, excluded.metadata,
        documents.collection, excluded.collection, documents.trust, excluded.trust,
        documents.audience, excluded.audience, documents.valid_until, excluded.valid_until
    )),
    status = 'indexing', chunks_done = 0, chunks_total = NULL, error = NULL, deleted_sequence = NULL,
    payloads = (
        SELECT coalesce(array_agg(name), '{}')
        FROM (SELECT unnest(documents.payloads) UNION SELECT unnest(excluded.payloads)) AS named (name)
    )
WHERE $9::boolean
    OR (
        $8 > coalesce(documents.deleted_sequence, 0)
        AND ($8 > documents.sequence OR ($8 = documents.sequence AND documents.status IN ('indexing', 'queued')))
    )
RETURNING document_id;

-- name: progress
UPDATE documents SET chunks_done = $4, chunks_total = $5
WHERE tenant = $1 AND document_id = $2 AND sequence = $3 AND status = 'indexing';

-- name: fail_document
-- A message that never got as far as to be begun leaves its document queued.
UPDATE documents SET status = 'failed', error = $4
WHERE tenant = $1 AND document_id = $2
    AND (status = 'indexing' AND sequence = $3 OR status = 'queued' AND sequence < $3);

-- name: lock_indexing
SELECT document_id FROM documents
WHERE tenant = $1 AND document_id = $2 AND sequence = $3 AND status = 'indexing'
FOR UPDATE;

-- name: lock_document
SELECT payloads FROM documents
WHERE tenant = $1 AND document_id = $2 AND status <> 'deleted'
    AND ($3::text[] IS NULL OR audience IS NULL OR audience && $3)
FOR UPDATE;

-- name: end_document
-- $4: why nothing can be found in it.
UPDATE documents SET
    status = CASE WHEN $4::text IS NULL THEN 'ready' ELSE 'failed' END,
    chunks_done = $3, chunks_total = $3, error = $4, language = $5,
    -- What failed is tried again.
    indexed_as = CASE WHEN $4::text IS NULL THEN $6 END, unchanged = false,
    words_version = DEFAULT
WHERE tenant = $1 AND document_id = $2;

-- name: end_version
-- What the version says that is in place now, but for what was changed since. $7: it says nothing.
UPDATE documents SET
    trust = CASE WHEN 'trust' = ANY (changed) THEN trust ELSE $4 END,
    audience = CASE WHEN 'audience' = ANY (changed) THEN audience ELSE $5::text[] END,
    valid_until = CASE WHEN 'valid_until' = ANY (changed) THEN valid_until ELSE $6 END
WHERE tenant = $1 AND document_id = $2 AND sequence = $3 AND NOT $7::boolean;

-- name: drop_bands
DELETE FROM document_bands WHERE tenant = $1 AND document_id = $2;

-- name: near_candidates
-- Documents with a key in common; only those that all may find who may find this one.
SELECT other.document_id, other.signature
FROM (SELECT audience FROM documents WHERE tenant = $1 AND document_id = $2) AS own
CROSS JOIN LATERAL (
    SELECT DISTINCT document_id FROM document_bands
    WHERE tenant = $1 AND band = ANY ($3::bigint[]) AND document_id <> $2
) AS met
JOIN documents AS other ON other.tenant = $1 AND other.document_id = met.document_id
WHERE other.status <> 'deleted' AND other.signature IS NOT NULL
    AND (other.audience IS NULL OR other.audience @> own.audience)
LIMIT $4;

-- name: put_bands
INSERT INTO document_bands (tenant, document_id, band) SELECT $1, $2, unnest($3::bigint[]);

-- name: note_copy
UPDATE documents SET signature = $3, near_duplicate_of = $4, near_duplicate_share = $5
WHERE tenant = $1 AND document_id = $2;

-- name: change_document
-- $3: what is changed. The words of its passages are renewed beside the searches where its name is another one.
UPDATE documents SET
    name = CASE WHEN 'name' = ANY ($3::text[]) THEN $4 ELSE name END,
    metadata = CASE WHEN 'metadata' = ANY ($3) THEN coalesce($5::jsonb, '{}') ELSE metadata END,
    collection = CASE WHEN 'collection' = ANY ($3) THEN $6 ELSE collection END,
    audience = CASE WHEN 'audience' = ANY ($3) THEN $7::text[] ELSE audience END,
    valid_until = CASE WHEN 'valid_until' = ANY ($3) THEN $8 ELSE valid_until END,
    trust = CASE WHEN 'trust' = ANY ($3) THEN $9 ELSE trust END,
    changed = ARRAY(SELECT unnest(changed) UNION SELECT unnest($3) EXCEPT SELECT 'name'),
    words_version = CASE WHEN 'name' = ANY ($3) AND name <> $4 THEN least(words_version, 4) ELSE words_version END,
    indexed_as = CASE WHEN 'name' = ANY ($3) AND name <> $4 THEN NULL ELSE indexed_as END
WHERE tenant = $1 AND document_id = $2;

-- name: state_of_document
SELECT status FROM documents
WHERE tenant = $1 AND document_id = $2 AND status <> 'deleted'
    AND ($3::text[] IS NULL OR audience IS NULL OR audience && $3)
FOR UPDATE;

-- name: keep_document
-- Ends the indexing of a document that is stored as it would be again.
UPDATE documents SET status = 'ready', unchanged = true, chunks_done = stored.chunks, chunks_total = stored.chunks
FROM (SELECT count(*) AS chunks FROM chunks WHERE tenant = $1 AND document_id = $2) AS stored
WHERE tenant = $1 AND document_id = $2 AND sequence = $3 AND status = 'indexing' AND indexed_as = $4
RETURNING document_id;

-- name: forget_copied_metadata
-- Earlier versions copied a document's metadata into its passages; what is their own is where they stand.
UPDATE chunks
SET metadata = metadata - ARRAY(SELECT jsonb_object_keys(metadata) EXCEPT SELECT unnest(ARRAY['page', 'headings']))
WHERE tenant = $1 AND document_id = $2 AND metadata - ARRAY['page', 'headings'] <> '{}';

-- name: bury_document
-- Leaves a tombstone, for a message that may still come, and until its objects on the bus are gone.
UPDATE documents SET
    status = 'deleted', deleted_sequence = $3, name = '', metadata = '{}', error = NULL,
    chunks_done = 0, chunks_total = NULL, size_bytes = 0,
    collection = NULL, audience = NULL, valid_until = NULL, changed = '{}',
    signature = NULL, near_duplicate_of = NULL, near_duplicate_share = NULL
WHERE tenant = $1 AND document_id = $2;

-- name: tombstones
SELECT document_id, deleted_sequence, payloads FROM documents WHERE tenant = $1 AND status = 'deleted';

-- name: tenants_with_tombstones
SELECT DISTINCT tenant FROM documents WHERE status = 'deleted' LIMIT $1;

-- name: clear_tombstones
-- One that was deleted again meanwhile has another sequence, and stays.
DELETE FROM documents USING unnest($2::text[], $3::bigint[]) AS cleared (document_id, deleted_sequence)
WHERE documents.tenant = $1 AND documents.document_id = cleared.document_id AND documents.status = 'deleted'
    AND documents.deleted_sequence = cleared.deleted_sequence;

-- name: find_kept_embeddings
WITH found AS MATERIALIZED (
    SELECT text_sha256, embedding, used_at FROM kept_embeddings
    WHERE tenant = $1 AND model = $2 AND text_sha256 = ANY ($3::bytea[])
),
used AS (
    UPDATE kept_embeddings AS kept SET used_at = now()
    FROM found
    WHERE kept.tenant = $1 AND kept.model = $2 AND kept.text_sha256 = found.text_sha256
        AND found.used_at < now() - interval '1 day'
)
SELECT text_sha256, embedding FROM found;

-- name: keep_embedding
INSERT INTO kept_embeddings (tenant, model, text_sha256, embedding, bytes)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, model, text_sha256) DO UPDATE SET used_at = now();

-- name: forget_kept_embeddings
-- Of passages that are gone, unless the document's new version has them too.
DELETE FROM kept_embeddings
WHERE tenant = $1 AND text_sha256 = ANY ($3::bytea[]) AND text_sha256 NOT IN (
    SELECT text_sha256 FROM chunks WHERE tenant = $1 AND document_id = $2 AND text_sha256 IS NOT NULL
);

-- name: forget_unused_embeddings
DELETE FROM kept_embeddings WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM kept_embeddings WHERE used_at < now() - make_interval(secs => $1::double precision) LIMIT $2
));

-- name: tenants_with_surplus_embeddings
SELECT tenant FROM kept_embeddings GROUP BY tenant HAVING sum(bytes) > $1::bigint;

-- name: forget_surplus_embeddings
-- The oldest of a tenant beyond so many bytes.
DELETE FROM kept_embeddings AS kept
USING (
    SELECT model, text_sha256, sum(bytes) OVER (ORDER BY used_at DESC, model, text_sha256) AS total
    FROM kept_embeddings
    WHERE tenant = $1
) AS sized
WHERE kept.tenant = $1 AND kept.model = sized.model AND kept.text_sha256 = sized.text_sha256
    AND sized.total > $2::bigint;

-- name: lock_uploads
-- One reservation of a tenant at a time, so that several cannot all take the same room.
SELECT pg_advisory_xact_lock(hashtext('retrieval.uploads'), hashtext($1));

-- name: forget_expired_uploads
DELETE FROM uploads WHERE tenant = $1 AND stored_at < now() - make_interval(secs => $2::double precision);

-- name: reserve_upload
-- Counts an object that is about to be stored; no row comes back when the tenant has no room for it.
INSERT INTO uploads (tenant, name, bytes)
SELECT $1, $2, $3::bigint
WHERE $3::bigint + (SELECT coalesce(sum(bytes), 0) FROM uploads WHERE tenant = $1 AND name <> $2) <= $4::bigint
ON CONFLICT (tenant, name) DO UPDATE SET bytes = excluded.bytes, stored_at = excluded.stored_at
RETURNING name;

-- name: note_uploads
INSERT INTO uploads (tenant, name, bytes)
SELECT $1, name, bytes
FROM unnest($2::text[], $3::bigint[]) AS stored (name, bytes)
ON CONFLICT (tenant, name) DO NOTHING;

-- name: forget_uploads
DELETE FROM uploads WHERE tenant = $1 AND name = ANY ($2::text[]);

-- name: get_document
SELECT document_id, name, status, documents.media_type, chunks_done, chunks_total, size_bytes, error, metadata,
    embedding_model, created_at, sha256, width, height, pages, trust, language, unchanged,
    collection, audience, valid_until,
    coalesce(waiting.chunks, chunks_done) AS chunks_embedded, waiting.why AS embedding_error,
    twin.near_duplicate_of, CASE WHEN twin.near_duplicate_of IS NOT NULL THEN near_duplicate_share END AS near_duplicate_share
FROM documents
LEFT JOIN originals USING (tenant, document_id)
LEFT JOIN LATERAL vectors_awaited($1, document_id, status) AS waiting ON true
LEFT JOIN LATERAL (
    SELECT other.document_id AS near_duplicate_of FROM documents AS other
    WHERE other.tenant = $1 AND other.document_id = documents.near_duplicate_of AND other.status <> 'deleted'
        AND (other.audience IS NULL OR other.audience @> documents.audience)
) AS twin ON true
WHERE tenant = $1 AND document_id = $2 AND status <> 'deleted'
    AND ($3::text[] IS NULL OR audience IS NULL OR audience && $3);

-- name: put_original
INSERT INTO originals AS kept (
    tenant, document_id, content, sha256, media_type, width, height, pages, text_bytes, text_tokens
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (tenant, document_id) DO UPDATE SET
    content = excluded.content, sha256 = excluded.sha256, media_type = excluded.media_type, width = excluded.width,
    height = excluded.height, pages = excluded.pages, text_bytes = excluded.text_bytes,
    text_tokens = excluded.text_tokens, text = NULL, text_sha256 = NULL, text_of = NULL
WHERE kept.sha256 <> excluded.sha256 OR kept.media_type <> excluded.media_type;

-- name: put_text_of_file
-- Beside the bytes, which stay where they are.
UPDATE originals SET text = $3, text_sha256 = $4, text_of = sha256, text_bytes = octet_length($3::bytea), text_tokens = $5
WHERE tenant = $1 AND document_id = $2 AND (text_sha256 IS DISTINCT FROM $4 OR text_of IS DISTINCT FROM sha256);

-- name: delete_original
DELETE FROM originals WHERE tenant = $1 AND document_id = $2;

-- name: describe_originals
-- As a model is given it: of a file that no model reads the text, whose hash is another than that of the bytes.
SELECT document_id, name, status, error, width, height, pages, text_bytes, text_tokens, trust = 'untrusted' AS untrusted,
    CASE WHEN as_text THEN text_sha256 ELSE sha256 END AS sha256,
    CASE WHEN as_text THEN sha256 END AS original_sha256,
    CASE WHEN as_text THEN 'text/plain' ELSE originals.media_type END AS media_type,
    octet_length(CASE WHEN as_text THEN text ELSE content END) AS size_bytes
FROM documents
LEFT JOIN originals USING (tenant, document_id)
CROSS JOIN LATERAL (SELECT text_of IS NOT NULL AND text_of = sha256 AS as_text) AS given
WHERE tenant = $1 AND document_id = ANY ($2::text[]) AND status <> 'deleted'
    AND ($3::text[] IS NULL OR audience IS NULL OR audience && $3);

-- name: read_original
SELECT sha256, octet_length(meant) AS size_bytes, substring(meant FROM $3 + 1 FOR $4) AS piece
FROM (
    SELECT tenant, document_id, CASE WHEN as_text THEN text_sha256 ELSE sha256 END AS sha256,
        CASE WHEN as_text THEN text ELSE content END AS meant
    FROM originals
    CROSS JOIN LATERAL (SELECT text_of IS NOT NULL AND text_of = sha256 AND text_sha256 = $6 AS as_text) AS given
) AS originals
JOIN documents USING (tenant, document_id)
WHERE tenant = $1 AND document_id = $2 AND ($5::text[] IS NULL OR audience IS NULL OR audience && $5);

-- name: whole_original
SELECT name, documents.media_type, metadata, trust, collection, audience, valid_until, content
FROM documents
LEFT JOIN originals USING (tenant, document_id)
WHERE tenant = $1 AND document_id = $2 AND status <> 'deleted';

-- name: list_chunks
SELECT chunk_id, position, text, metadata -> 'headings' AS headings, metadata -> 'page' AS page,
    starts_at AS start, ends_at AS "end",
    (SELECT substr(lexeme, 3) FROM unnest(words) WHERE lexeme LIKE '~~%' LIMIT 1) AS language,
    EXISTS (
        SELECT FROM vector_sets AS live
        JOIN chunk_vectors AS held ON held.tenant = $1 AND held.set_id = live.set_id AND held.chunk_id = chunks.chunk_id
        WHERE live.tenant = $1 AND live.state = 'live'
    ) AS embedded
FROM chunks
WHERE tenant = $1 AND document_id = $2 AND position >= $3
ORDER BY position
LIMIT $4;

-- name: may_be_found
SELECT (audience IS NULL OR audience && $3::text[]) AND (valid_until IS NULL OR valid_until > now())
FROM documents
WHERE tenant = $1 AND document_id = $2 AND status <> 'deleted';

-- name: read_passages
-- With the white space before each; of what was stored before that was kept, a line end stands for it.
SELECT position,
    coalesce(space_before, CASE position WHEN 0 THEN '' ELSE E'\n' END) || text AS text
FROM chunks
WHERE tenant = $1 AND document_id = $2 AND position >= $3
ORDER BY position
LIMIT $4;

-- name: sequences_of
SELECT sequence, deleted_sequence FROM documents WHERE tenant = $1 AND document_id = $2;

-- name: list_documents
SELECT document_id, name, status, documents.media_type, chunks_done, chunks_total, size_bytes, error, metadata,
    embedding_model, created_at, sha256, width, height, pages, trust, language, unchanged,
    collection, audience, valid_until,
    coalesce(waiting.chunks, chunks_done) AS chunks_embedded, waiting.why AS embedding_error,
    twin.near_duplicate_of, CASE WHEN twin.near_duplicate_of IS NOT NULL THEN near_duplicate_share END AS near_duplicate_share
FROM documents
LEFT JOIN originals USING (tenant, document_id)
LEFT JOIN LATERAL vectors_awaited($1, document_id, status) AS waiting ON true
LEFT JOIN LATERAL (
    SELECT other.document_id AS near_duplicate_of FROM documents AS other
    WHERE other.tenant = $1 AND other.document_id = documents.near_duplicate_of AND other.status <> 'deleted'
        AND (other.audience IS NULL OR other.audience @> documents.audience)
) AS twin ON true
WHERE tenant = $1 AND status <> 'deleted'
    AND ($2::timestamptz IS NULL OR (created_at, document_id) < ($2, $3::text))
    AND ($5::text IS NULL OR name LIKE $5)
    AND ($6::text IS NULL OR status = $6)
    AND ($7::text[] IS NULL OR audience IS NULL OR audience && $7)
    AND ($8::text IS NULL OR collection = $8)
    AND ($9::text IS NULL OR language = $9)
ORDER BY created_at DESC, document_id DESC
LIMIT $4;

-- name: passages_end
SELECT coalesce(max(position) + 1, 0) FROM chunks WHERE tenant = $1 AND document_id = $2;

-- name: note_counts
-- What the passages from $3 on and before $4 add ($5 = 1) to the tenant's counts, or take away ($5 = -1).
WITH passage AS MATERIALIZED (
    SELECT embedding_model, dimensions, words, words_count FROM chunks
    WHERE tenant = $1 AND document_id = $2 AND position >= $3 AND position < $4
),
counted AS (
    SELECT embedding_model, dimensions, count(*) AS chunks, sum(words_count) AS words
    FROM passage
    GROUP BY embedding_model, dimensions
),
listed AS (
    SELECT embedding_model, dimensions, array_agg(term) AS terms, array_agg(($5 * chunks)::integer) AS chunks
    FROM (
        SELECT embedding_model, dimensions, lexeme AS term, count(*) AS chunks
        FROM passage, unnest(words)
        GROUP BY embedding_model, dimensions, lexeme
    ) AS held
    GROUP BY embedding_model, dimensions
)
INSERT INTO count_changes (tenant, embedding_model, dimensions, chunks, words, terms, term_chunks, terms_count)
SELECT $1, embedding_model, dimensions, $5::integer * counted.chunks, $5 * counted.words,
    coalesce(terms, '{}'), coalesce(listed.chunks, '{}'), coalesce(cardinality(terms), 0)
FROM counted
LEFT JOIN listed USING (embedding_model, dimensions);

-- name: work_due
-- What of it is to be done beside the messages: each is true where its own statements may find something.
-- $1: seconds after which a call that was made and paid for counts as lost.
SELECT
    EXISTS (SELECT FROM count_changes) AS counts,
    EXISTS (
        SELECT FROM embedding_calls
        WHERE (state <> 'open' AND report_from <= now()) OR at < now() - make_interval(secs => $1)
    ) AS payments,
    EXISTS (SELECT FROM pending_vectors WHERE claimed_until < now())
        OR EXISTS (
            SELECT FROM vector_sets AS built
            WHERE (state = 'building' OR (state = 'shadow' AND automatic)) AND NOT EXISTS (
                SELECT FROM pending_vectors AS pending
                WHERE pending.tenant = built.tenant AND pending.set_id = built.set_id
            )
        ) AS vectors;

-- name: tenants_with_changes
SELECT DISTINCT tenant FROM count_changes ORDER BY tenant;

-- name: lock_counts
-- One at a time adds a tenant's changes.
SELECT pg_try_advisory_xact_lock(hashtext('retrieval.counts'), hashtext($1));

-- name: add_changes
-- Adds the oldest changes, of about $2 words in all, to the counts; says how many these were and which words may be in no passage now.
WITH oldest AS (
    SELECT change, sum(terms_count) OVER (ORDER BY change) - terms_count AS before
    FROM count_changes
    WHERE tenant = $1
    ORDER BY change
    LIMIT 1000
),
taken AS (
    DELETE FROM count_changes
    WHERE tenant = $1 AND change IN (SELECT change FROM oldest WHERE before < $2)
    RETURNING embedding_model, dimensions, chunks, words, terms, term_chunks
),
in_corpora AS (
    INSERT INTO corpora AS known (tenant, embedding_model, dimensions, chunks, words)
    SELECT $1, embedding_model, dimensions, sum(chunks), sum(words)
    FROM taken
    GROUP BY embedding_model, dimensions
    ON CONFLICT (tenant, embedding_model, dimensions) DO UPDATE SET
        chunks = known.chunks + excluded.chunks, words = known.words + excluded.words
),
in_terms AS (
    INSERT INTO terms AS known (tenant, term, chunks)
    SELECT $1, term, sum(change.chunks)
    FROM taken, unnest(terms, term_chunks) AS change (term, chunks)
    GROUP BY term
    HAVING sum(change.chunks) <> 0
    ORDER BY term COLLATE "C"
    ON CONFLICT (tenant, term) DO UPDATE SET chunks = known.chunks + excluded.chunks
    RETURNING term, chunks
)
SELECT (SELECT count(*) FROM taken) AS changes,
    (SELECT coalesce(array_agg(term), '{}') FROM in_terms WHERE chunks <= 0) AS unused;

-- name: delete_task_edges
-- They quote the document.
DELETE FROM task_edges WHERE tenant = $1 AND document_id = $2;

-- name: delete_tasks_of
-- What is known from the document alone.
DELETE FROM tasks WHERE tenant = $1 AND $2 = ANY (document_ids);

-- name: delete_chunks
-- The answer says what was embedded for them.
DELETE FROM chunks WHERE tenant = $1 AND document_id = $2 RETURNING text_sha256;

-- name: live_set
-- `waiting`: documents, up to a hundred, whose passages do not all have vectors in it.
SELECT set_id, model, asked_dimensions, dimensions, (
    SELECT count(*) FROM (
        SELECT FROM pending_vectors AS pending WHERE tenant = $1 AND pending.set_id = live.set_id LIMIT 100
    ) AS counted
) AS waiting
FROM vector_sets AS live
WHERE tenant = $1 AND state = 'live';

-- name: make_live_set
-- A tenant's first: of the model that it has chosen, else of the settings'.
INSERT INTO vector_sets (tenant, model, asked_dimensions, state)
SELECT $1, coalesce(chosen.model, $2), CASE WHEN chosen.model IS NULL THEN $3::integer ELSE chosen.asked_dimensions END, 'live'
FROM (SELECT) AS one LEFT JOIN vector_choices AS chosen ON chosen.tenant = $1
WHERE NOT EXISTS (SELECT FROM vector_sets WHERE tenant = $1 AND state = 'live')
ON CONFLICT DO NOTHING;

-- name: delete_chunk_vectors
-- After its chunks: a process that adds a vector to one of them holds it until then.
DELETE FROM chunk_vectors WHERE tenant = $1 AND document_id = $2;

-- name: add_chunk_vector
INSERT INTO chunk_vectors (tenant, set_id, chunk_id, document_id, dimensions, embedding) VALUES ($1, $2, $3, $4, $5, $6);

-- name: await_vectors
-- In every set of the tenant that is searched or built, but for the one ($4) that has them already.
WITH whole AS (DELETE FROM pending_vectors WHERE tenant = $1 AND set_id = $4 AND document_id = $2)
INSERT INTO pending_vectors (tenant, set_id, document_id, sequence, claimed_until)
SELECT $1, set_id, $2, $3, CASE state WHEN 'live' THEN '-infinity' ELSE now() END
FROM vector_sets
WHERE tenant = $1 AND state IN ('live', 'building', 'shadow') AND set_id IS DISTINCT FROM $4
ON CONFLICT (tenant, set_id, document_id) DO UPDATE SET
    sequence = excluded.sequence, claimed_until = excluded.claimed_until, error = NULL;

-- name: add_chunks
-- The passages of a document from its place $6 on, many in one statement: each statement costs as much as half a passage.
INSERT INTO chunks (
    tenant, chunk_id, document_id, position, name, text, metadata, words, words_count, embedding_model, dimensions,
    text_sha256, starts_at, ends_at, space_before
)
SELECT $1, chunk_id, $2, $6 + place - 1, $3, text, metadata, words,
    coalesce((SELECT sum(cardinality(positions)) FROM unnest(words)), 0), $4, $5, text_sha256, starts_at, ends_at,
    space_before
FROM unnest($8::text[], $9::text[], $10::text[], $11::jsonb[], $12::bytea[], $13::integer[], $14::integer[], $15::text[])
    WITH ORDINALITY AS given (chunk_id, headings, text, metadata, text_sha256, starts_at, ends_at, space_before, place),
    -- Without the offset they would be worked out each time that they are named.
    LATERAL (SELECT words_of($3, headings, text, $7) AS words OFFSET 0) AS of_passage;

-- name: drop_unused_terms
DELETE FROM terms WHERE tenant = $1 AND term = ANY ($2::text[]) AND chunks <= 0;

-- name: tenants_to_segment
SELECT tenant FROM documents
WHERE segment_sequence IS DISTINCT FROM sequence AND status IN ('ready', 'failed')
GROUP BY tenant
HAVING sum(chunks_total) >= $1
ORDER BY tenant;

-- name: lock_segments
SELECT pg_try_advisory_xact_lock(hashtext('retrieval.segments'), hashtext($1));

-- name: documents_to_segment
-- About $2 passages of documents that are in no segment as they are now.
SELECT document_id, sequence, chunks
FROM (
    SELECT document_id, sequence, chunks_total AS chunks,
        sum(chunks_total) OVER (ORDER BY document_id) - chunks_total AS before
    FROM documents
    WHERE tenant = $1 AND segment_sequence IS DISTINCT FROM sequence AND status IN ('ready', 'failed') AND chunks_total > 0
) AS fresh
WHERE before < $2;

-- name: live_segments
SELECT segment, segments.chunks,
    coalesce(sum(chunks_total) FILTER (WHERE segment_sequence = sequence), 0) AS live
FROM segments
LEFT JOIN documents USING (tenant, segment)
WHERE tenant = $1
GROUP BY segment, segments.chunks
ORDER BY live, segment;

-- name: documents_of_segments
SELECT document_id, sequence, coalesce(chunks_total, 0) AS chunks
FROM documents
WHERE tenant = $1 AND segment = ANY ($2::bigint[]) AND segment_sequence = sequence;

-- name: use_build_settings
SELECT set_config('work_mem', '64MB', true), set_config('plan_cache_mode', 'force_custom_plan', true);

-- name: average_words
SELECT sum(words)::float8 / nullif(sum(chunks), 0) FROM corpora WHERE tenant = $1;

-- name: add_segment
INSERT INTO segments (tenant, chunks) VALUES ($1, $2) RETURNING segment;

-- name: add_postings
-- Words that one passage of a segment has alone are left out: the index of words finds what is rare.
WITH passage AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY document_id, position)::integer - 1 AS slot, chunk_id, document_id, words,
        $4::float8 * (1 - $5::float8 + $5 * words_count / $6::float8) AS norm
    FROM chunks
    WHERE tenant = $1 AND document_id = ANY ($3::text[])
),
named AS (
    INSERT INTO segment_chunks (tenant, segment, slot, chunk_id, document_id)
    SELECT $1, $2, slot, chunk_id, document_id FROM passage
)
INSERT INTO postings (tenant, segment, term, postings)
SELECT $1, $2, lexeme, string_agg(int4send(slot * 256 + greatest(1, round($7::float8 * times / (times + norm)))::integer), '')
FROM passage
CROSS JOIN LATERAL (
    SELECT lexeme, coalesce(cardinality(positions), 1) AS times FROM unnest(words)
) AS word
WHERE lexeme NOT LIKE '~%'
GROUP BY lexeme
HAVING count(*) > 1;

-- name: put_in_segment
-- One that was replaced meanwhile stays outside.
UPDATE documents SET segment = $2, segment_sequence = taken.sequence
FROM unnest($3::text[], $4::bigint[]) AS taken (document_id, sequence)
WHERE tenant = $1 AND documents.document_id = taken.document_id AND documents.sequence = taken.sequence;

-- name: drop_postings
DELETE FROM postings WHERE tenant = $1 AND segment = ANY ($2::bigint[]);

-- name: drop_segment_chunks
DELETE FROM segment_chunks WHERE tenant = $1 AND segment = ANY ($2::bigint[]);

-- name: drop_segments
DELETE FROM segments WHERE tenant = $1 AND segment = ANY ($2::bigint[]);

-- name: segments
SELECT segment FROM segments WHERE tenant = $1;

-- name: posting_lists
SELECT segment, term, postings FROM postings
WHERE tenant = $1 AND segment = ANY ($2::bigint[]) AND term = ANY ($3::text[]);

-- name: chunks_at
SELECT chunk_id FROM segment_chunks
JOIN unnest($2::bigint[], $3::integer[]) WITH ORDINALITY AS place (segment, slot, at) USING (segment, slot)
WHERE tenant = $1
ORDER BY at;

-- name: documents_in_no_segment
-- Also those that are being indexed: what they held before is searched until then.
SELECT document_id FROM documents
WHERE tenant = $1 AND segment_sequence IS DISTINCT FROM sequence AND status <> 'deleted'
LIMIT $2;

-- name: use_search_settings
-- Fewer candidates lose neighbours; with a filter the index must go on until it has enough. A plan made for other
-- parameters would leave out the index that these need.
SELECT set_config('hnsw.ef_search', '100', true),
    set_config('hnsw.iterative_scan', 'relaxed_order', true),
    set_config('hnsw.max_scan_tuples', '200000', true),
    set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('jit', 'off', true);

-- name: has_old_words
SELECT EXISTS (SELECT FROM documents WHERE tenant = $1 AND words_version < 4);

-- name: word_index_is_used
-- Whether row-level security lets a condition on words use their index.
SELECT proleakproof FROM pg_proc WHERE oid = 'pg_catalog.ts_match_vq(tsvector,tsquery)'::regprocedure;

-- name: corpora
SELECT embedding_model, dimensions, sum(chunks)::bigint AS chunks, sum(words)::bigint AS words
FROM (
    SELECT embedding_model, dimensions, chunks, words FROM corpora WHERE tenant = $1
    UNION ALL
    SELECT embedding_model, dimensions, chunks, words FROM count_changes WHERE tenant = $1
) AS known
GROUP BY embedding_model, dimensions
HAVING sum(chunks) > 0;

-- name: query_terms
-- The words of a query as the index knows them, how often each is in the query, and in how many chunks: stemmed by each
-- language that the tenant's passages are in, without the stop words of the query's own language. Words of one place are
-- forms of one word. While passages are stored with the words of a version before, also as that version knew them.
-- Of what documents changed and the counts do not have yet the newest $3 words are read. While there are more, each word of
-- the query counts as being in a passage: where it is, the index of passages knows.
WITH newest AS (
    SELECT change, sum(terms_count) OVER (ORDER BY change DESC) - terms_count AS before
    FROM count_changes
    WHERE tenant = $1
),
changes AS MATERIALIZED (
    SELECT terms, term_chunks FROM count_changes
    WHERE tenant = $1 AND change IN (SELECT change FROM newest WHERE before < $3::bigint)
),
unread AS (SELECT EXISTS (SELECT FROM newest WHERE before >= $3::bigint) AS words),
marked AS (
    SELECT term FROM terms WHERE tenant = $1 AND term >= '~~' AND term < '~~~' AND chunks > 0
    UNION
    SELECT term FROM changes, unnest(terms) AS term WHERE term >= '~~' AND term < '~~~'
),
spoken AS (
    SELECT substr(term, 3)::regconfig AS language FROM marked
    UNION
    SELECT 'english' WHERE NOT EXISTS (SELECT FROM marked)
        OR EXISTS (SELECT FROM documents WHERE tenant = $1 AND words_version < 5)
),
plain AS MATERIALIZED (SELECT spaced($2) AS query),
of_language AS (
    SELECT language, word.lexeme, word.positions
    FROM spoken, plain, unnest(to_tsvector(language, query)) AS word
),
own AS (SELECT language FROM spoken WHERE language = language_of($2)),
kept AS (SELECT unnest(positions) AS place FROM of_language JOIN own USING (language)),
asked AS (
    SELECT lexeme, max(cardinality(positions)) AS times, min(positions[1]) AS place
    FROM of_language
    WHERE NOT EXISTS (SELECT FROM own) OR positions[1] IN (SELECT place FROM kept)
    GROUP BY lexeme
    UNION ALL
    SELECT lexeme, 1, NULL FROM unnest(identifiers_of($2))
    UNION ALL
    SELECT DISTINCT lexeme, 1, 0 FROM spoken, unnest(parts_of_names($2, language))
    WHERE lexeme NOT IN (SELECT lexeme FROM of_language)
),
asked_before AS (
    SELECT lexeme, cardinality(positions) AS times, NULL::integer AS place
    FROM unnest(to_tsvector('english', spaced_before($2)))
    WHERE EXISTS (SELECT FROM documents WHERE tenant = $1 AND words_version < 2)
        AND lexeme NOT IN (SELECT lexeme FROM asked)
),
word AS (SELECT * FROM asked UNION ALL SELECT * FROM asked_before),
changed AS (
    SELECT term, sum(change.chunks)::bigint AS chunks
    FROM changes, unnest(terms, term_chunks) AS change (term, chunks)
    WHERE term IN (SELECT lexeme FROM word)
    GROUP BY term
)
SELECT lexeme AS term, times, place,
    greatest(coalesce(known.chunks, 0) + coalesce(changed.chunks, 0), CASE WHEN unread.words THEN 1 END) AS chunks
FROM word
CROSS JOIN unread
-- With the limit each word is looked up: joined, the words of all tenants may be read, for the planner expects more words.
LEFT JOIN LATERAL (SELECT chunks FROM terms WHERE tenant = $1 AND term = word.lexeme LIMIT 1) AS known ON true
LEFT JOIN changed ON changed.term = word.lexeme;

-- name: documents_with_old_words
SELECT tenant, document_id FROM documents
WHERE words_version < 5 AND (tenant, document_id) > ($1, $2)
ORDER BY tenant, document_id
LIMIT $3;

-- name: lock_old_words
-- No row: a newer version of the document is there, or it is being written.
SELECT document_id FROM documents
WHERE tenant = $1 AND document_id = $2 AND words_version < 5
FOR UPDATE SKIP LOCKED;

-- name: renew_words
-- Of the next passages of a document those whose words change are stored anew, and what they gain and lose is noted.
WITH batch AS MATERIALIZED (
    SELECT chunk_id, position, words AS before, words_count AS count_before,
        named.name,
        words_of(
            named.name,
            CASE jsonb_typeof(metadata -> 'headings') WHEN 'array' THEN (
                SELECT coalesce(string_agg(heading, ' '), '') FROM jsonb_array_elements_text(metadata -> 'headings') AS heading
            ) ELSE '' END,
            text,
            named.language
        ) AS after
    FROM chunks
    CROSS JOIN (
        SELECT name, language FROM documents WHERE documents.tenant = $1 AND documents.document_id = $2
    ) AS named
    WHERE tenant = $1 AND document_id = $2 AND position > $3
    ORDER BY position
    LIMIT $4
),
renewed AS (
    UPDATE chunks
    SET words = after, words_count = coalesce((SELECT sum(cardinality(positions)) FROM unnest(after)), 0),
        name = batch.name
    FROM batch
    WHERE chunks.tenant = $1 AND chunks.chunk_id = batch.chunk_id AND after <> before
    RETURNING embedding_model, dimensions, words_count - count_before AS words,
        ARRAY(SELECT lexeme FROM unnest(after) EXCEPT SELECT lexeme FROM unnest(before)) AS gained,
        ARRAY(SELECT lexeme FROM unnest(before) EXCEPT SELECT lexeme FROM unnest(after)) AS lost
),
counted AS (SELECT embedding_model, dimensions, sum(words) AS words FROM renewed GROUP BY embedding_model, dimensions),
listed AS (
    SELECT embedding_model, dimensions, array_agg(term) AS terms, array_agg(chunks::integer) AS chunks
    FROM (
        SELECT embedding_model, dimensions, term, sum(difference) AS chunks
        FROM renewed, LATERAL (
            SELECT unnest(gained), 1 UNION ALL SELECT unnest(lost), -1
        ) AS moved (term, difference)
        GROUP BY embedding_model, dimensions, term
    ) AS held
    GROUP BY embedding_model, dimensions
),
noted AS (
    INSERT INTO count_changes (tenant, embedding_model, dimensions, chunks, words, terms, term_chunks, terms_count)
    SELECT $1, embedding_model, dimensions, 0, counted.words,
        coalesce(terms, '{}'), coalesce(listed.chunks, '{}'), coalesce(cardinality(terms), 0)
    FROM counted
    LEFT JOIN listed USING (embedding_model, dimensions)
)
SELECT position FROM batch ORDER BY position;

-- name: end_old_words
UPDATE documents SET words_version = 5, segment_sequence = NULL WHERE tenant = $1 AND document_id = $2;

-- name: has_restricted_documents
SELECT EXISTS (SELECT FROM documents WHERE tenant = $1 AND (audience IS NOT NULL OR valid_until IS NOT NULL));

-- name: filtered_documents
-- At most $4 documents that fulfil a filter and that $6 may find, and how many passages they have.
SELECT document_id, coalesce(chunks_total, 0) AS chunks
FROM documents
WHERE tenant = $1 AND status <> 'deleted' AND filter_words(tenant, collection, metadata) @@ wanted_words($1, $2, $3)
    AND fulfils(metadata, $2) AND ($5::text[] IS NULL OR document_id = ANY ($5))
    AND (audience IS NULL OR audience && $6::text[]) AND (valid_until IS NULL OR valid_until > now())
LIMIT $4;

-- name: near_terms
-- Words of the tenant that become the same as one of $2's without one of their letters.
SELECT term, chunks FROM terms
WHERE tenant = $1 AND length(term) BETWEEN 4 AND 20 AND term !~ '[0-9~ǀǁǂǃ]'
    AND term_deletions(tenant, term) @@ ($2::text)::tsquery AND chunks > 0
    -- Without their index all words of the tenant would be looked through.
    AND (SELECT bool_and(proleakproof) FROM pg_proc WHERE oid IN (
        'pg_catalog.ts_match_vq(tsvector,tsquery)'::regprocedure, 'term_deletions(text,text)'::regprocedure
    ))
ORDER BY chunks DESC, term
LIMIT 20;

-- name: terms_that_begin
SELECT term, chunks FROM terms
WHERE tenant = $1 AND term >= $2 AND term < $2 || chr(1114111) AND chunks > 0
ORDER BY chunks DESC, term
LIMIT 20;

-- name: demands
-- What must match ($2: phrases, with one of their forms each) and must not ($3), by the languages of the tenant's passages. Of scripts without spaces a
-- phrase's pairs must all be there. Of what the counts do not have yet the newest $4 words are read.
WITH newest AS (
    SELECT change, sum(terms_count) OVER (ORDER BY change DESC) - terms_count AS before
    FROM count_changes
    WHERE tenant = $1
),
marked AS (
    SELECT term FROM terms WHERE tenant = $1 AND term >= '~~' AND term < '~~~' AND chunks > 0
    UNION
    SELECT term FROM count_changes, unnest(terms) AS term
    WHERE tenant = $1 AND change IN (SELECT change FROM newest WHERE before < $4::bigint)
        AND term >= '~~' AND term < '~~~'
),
spoken AS (
    SELECT substr(term, 3)::regconfig AS language FROM marked
    UNION
    SELECT 'english' WHERE NOT EXISTS (SELECT FROM marked)
),
asked AS (
    SELECT n, phrase, wanted FROM unnest($2::text[]) WITH ORDINALITY AS phrases (phrase, n), (SELECT true) AS must (wanted)
    UNION ALL
    SELECT n, phrase, false FROM unnest($3::text[]) WITH ORDINALITY AS phrases (phrase, n)
),
matched AS (
    SELECT wanted, n, '(' || string_agg(match::text, ' | ') || ')' AS match
    FROM asked, spoken, LATERAL (
        SELECT CASE WHEN phrase ~ ('[' || unspaced_scripts() || ']') THEN plainto_tsquery(language, spaced(phrase))
            ELSE phraseto_tsquery(language, spaced(phrase)) END AS match
    ) AS said
    WHERE numnode(match) > 0
    GROUP BY wanted, n
)
SELECT string_agg(match, ' & ') FILTER (WHERE wanted) AS must, string_agg(match, ' | ') FILTER (WHERE NOT wanted) AS must_not
FROM matched;

-- name: search
-- Both legs and their fusion. A leg that the mode leaves out is a constant false condition and costs nothing.
--  $1 tenant          $2 document ids or null   $3 metadata or null    $4 candidates of a leg
--  $5 use words       $6 what must match        $7 terms               $8 their weights
--  $9 k1             $10 b                     $11 average words      $12 use vectors
-- $13 query vector   $14 set of vectors        $15 weight of words    $16 weight of vectors
-- $17 the most that the words could weigh       $18 least score        $19 top k
-- $20 least cosine      $21 passages that postings chose, or null     $22 documents in no segment, or null
-- $23 what must match in these                  $24 what all passages must match, or null
-- $25 conditions on the document's metadata, or null                  $26 collections, or null
-- $27 on whose behalf   $28 whether there are documents that not everybody may find
-- {dimensions}, {stored}, {asked}: of the vectors, because the index is one for each number of them. {exact}: what keeps the index from
-- being used, where looking at each vector is cheaper.
WITH term AS MATERIALIZED (
    SELECT quoted::tsquery AS word, weight, quoted FROM unnest($7::text[], $8::float8[]) AS given (quoted, weight)
),
by_words AS MATERIALIZED (
    SELECT chunk_id, bm25.score
    FROM chunks
    CROSS JOIN LATERAL (
        SELECT $9::float8 * (1 - $10::float8 + $10 * words_count / $11::float8) AS norm
    ) AS length
    -- A sum for each row, where grouping might sort the rows with all their words in them.
    CROSS JOIN LATERAL (
        SELECT sum(weight * ($9 + 1) * (1 - norm / (norm + occurrences(words, word)))) AS score FROM term
    ) AS bm25
    WHERE $5::boolean AND tenant = $1 AND (
            ($6::text IS NOT NULL AND words @@ ($6::text)::tsquery)
            OR ($21::text[] IS NOT NULL AND chunk_id = ANY ($21))
            OR ($22::text[] IS NOT NULL AND document_id = ANY ($22) AND words @@ ($23::text)::tsquery)
        )
        {allowed}
    ORDER BY bm25.score DESC, chunk_id
    LIMIT $4
),
by_vector AS MATERIALIZED (
    SELECT chunk_id, {stored} <=> {asked} AS distance
    FROM chunk_vectors AS held
    WHERE $12::boolean AND tenant = $1 AND set_id = $14::bigint AND dimensions = {dimensions}
        AND ($2::text[] IS NULL OR document_id = ANY ($2))
        -- No passage is looked up where every one may be found.
        AND (
            $3::jsonb IS NULL AND $24::text IS NULL AND NOT $28::boolean AND $25::jsonb IS NULL AND $26::text[] IS NULL
            OR EXISTS (SELECT FROM chunks WHERE tenant = $1 AND chunks.chunk_id = held.chunk_id {allowed})
        )
    ORDER BY ({stored} <=> {asked}) {exact}
    LIMIT $4
),
ranked_words AS (
    SELECT chunk_id, score, rank() OVER (ORDER BY score DESC, chunk_id) AS rank,
        least(1, score / $17::float8) AS share,
        coalesce((score - min(score) OVER ()) / nullif(max(score) OVER () - min(score) OVER (), 0), 1) AS relative
    FROM by_words
),
ranked_vector AS (
    SELECT chunk_id, score, rank() OVER (ORDER BY score DESC, chunk_id) AS rank, greatest(0, score) AS share,
        coalesce((score - min(score) OVER ()) / nullif(max(score) OVER () - min(score) OVER (), 0), 1) AS relative
    FROM (SELECT chunk_id, 1 - distance AS score FROM by_vector) AS near
    WHERE score >= $20::float8
),
-- What the best passage would score that is the best of both legs; null: one leg is alone.
both_legs AS (
    SELECT $15::float8 * (SELECT max(share) FROM ranked_words) + $16::float8 * (SELECT max(share) FROM ranked_vector) AS best
),
fused AS (
    SELECT chunk_id,
        words.rank AS words_rank, words.score AS words_score,
        vector.rank AS vector_rank, vector.score AS vector_score,
        -- By how good a passage is within each leg, and on the scale of the best.
        CASE WHEN both_legs.best IS NULL THEN coalesce(words.share, vector.share)
            ELSE both_legs.best * ($15 * coalesce(words.relative, 0) + $16 * coalesce(vector.relative, 0))
        END AS score
    FROM ranked_words AS words
    FULL JOIN ranked_vector AS vector USING (chunk_id)
    CROSS JOIN both_legs
),
best AS MATERIALIZED (
    SELECT * FROM fused WHERE $18::float8 IS NULL OR score >= $18 ORDER BY score DESC, words_rank, chunk_id LIMIT $19
)
SELECT chunk_id, score, words_rank, words_score, vector_rank, vector_score, document_id, document.name, collection, text,
    passage.metadata || document.metadata AS metadata,
    starts_at, ends_at, space_before,
    trust = 'untrusted' AS untrusted, ARRAY(SELECT quoted FROM term WHERE passage.words @@ word) AS held
FROM best
-- One look-up a passage by the primary key, whatever the planner believes about the table.
CROSS JOIN LATERAL (
    SELECT document_id, text, metadata, words, starts_at, ends_at, space_before
    FROM chunks
    WHERE tenant = $1 AND chunks.chunk_id = best.chunk_id
    LIMIT 1
) AS passage
CROSS JOIN LATERAL (
    SELECT name, metadata, trust, collection FROM documents WHERE tenant = $1 AND documents.document_id = passage.document_id LIMIT 1
) AS document
ORDER BY score DESC, words_rank, chunk_id;

-- name: allowed
-- In both legs of a search: which passages it may find.
AND ($2::text[] IS NULL OR document_id = ANY ($2))
AND ($3::jsonb IS NULL OR EXISTS (
    SELECT FROM documents AS described
    WHERE described.tenant = $1 AND described.document_id = chunks.document_id
        AND NOT EXISTS (
            SELECT FROM jsonb_each($3) AS pair
            WHERE (chunks.metadata || described.metadata) -> pair.key IS DISTINCT FROM pair.value
        )
))
AND ($24::text IS NULL OR words @@ ($24::text)::tsquery)
AND (NOT $28::boolean AND $25::jsonb IS NULL AND $26::text[] IS NULL OR EXISTS (
    SELECT FROM documents AS holder
    WHERE holder.tenant = $1 AND holder.document_id = chunks.document_id
        AND (holder.audience IS NULL OR holder.audience && $27::text[])
        AND (holder.valid_until IS NULL OR holder.valid_until > now())
        AND ($26 IS NULL OR holder.collection = ANY ($26))
        AND ($25 IS NULL OR fulfils(holder.metadata, $25))
));

-- name: note_query
INSERT INTO asked_queries (tenant, query, query_sha256) VALUES ($1, $2, sha256(convert_to($2, 'UTF8')))
ON CONFLICT (tenant, query_sha256) DO UPDATE SET asked_at = now();

-- name: forget_queries
DELETE FROM asked_queries
WHERE tenant = $1 AND (asked_at < now() - make_interval(days => $3::integer) OR query_sha256 IN (
    SELECT query_sha256 FROM asked_queries WHERE tenant = $1 ORDER BY asked_at DESC OFFSET $2
));

-- name: begin_embedding
INSERT INTO embedding_calls (tenant, charge_id, model, worst_usd) VALUES ($1, $2, $3, $4);

-- name: end_embedding
-- $6: seconds for which it is left to a caller.
UPDATE embedding_calls
SET state = $3, input_tokens = $4, cost_usd = $5, report_from = now() + make_interval(secs => $6)
WHERE tenant = $1 AND charge_id = $2;

-- name: hand_over_embeddings
-- Returns those that nobody else reports: they are left to the caller for longer than this statement takes.
DELETE FROM embedding_calls
WHERE tenant = $1 AND charge_id = ANY ($2::text[]) AND report_from > now() + interval '20 s'
RETURNING charge_id;

-- name: report_embeddings_now
UPDATE embedding_calls SET report_from = now() WHERE tenant = $1 AND charge_id = ANY ($2::text[]);

-- name: forget_embeddings
DELETE FROM embedding_calls WHERE tenant = $1 AND charge_id = ANY ($2::text[]);

-- name: embeddings_to_report
-- What is still open after so long has lost its process: nobody will say how it ended.
SELECT * FROM embedding_calls
WHERE (state <> 'open' AND report_from <= now()) OR at < now() - make_interval(secs => $1)
ORDER BY tenant, at LIMIT $2;

-- name: note_owner
-- Of the version that is sent now.
INSERT INTO document_owners (tenant, document_id, user_id) VALUES ($1, $2, $3)
ON CONFLICT (tenant, document_id) DO UPDATE SET user_id = excluded.user_id
WHERE document_owners.user_id <> excluded.user_id;

-- name: documents_of_user
SELECT document_id FROM document_owners WHERE tenant = $1 AND user_id = $2 ORDER BY document_id;

-- name: forget_owner
DELETE FROM document_owners WHERE tenant = $1 AND document_id = $2;
