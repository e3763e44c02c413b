-- migrate:up

-- Sets of vectors: all of a tenant's passages, embedded by one model. Searches read the live one alone; another is built
-- beside it, compared with it, and takes its place in one row. The one before is kept for a day.
CREATE TABLE vector_sets (
    tenant text NOT NULL,
    set_id bigint GENERATED ALWAYS AS IDENTITY,
    model text NOT NULL,
    asked_dimensions integer, -- null: what the model gives
    dimensions integer, -- null until the first vector
    state text NOT NULL CHECK (state IN ('building', 'shadow', 'live', 'old', 'gone')),
    automatic boolean NOT NULL DEFAULT true, -- goes live by itself when it is whole
    overlap double precision, -- of the best ten passages of the tenant's last queries with those of the live set
    queries integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, set_id)
);
CREATE UNIQUE INDEX vector_sets_live ON vector_sets (tenant) WHERE state = 'live';
CREATE UNIQUE INDEX vector_sets_next ON vector_sets (tenant) WHERE state IN ('building', 'shadow');

CREATE TABLE chunk_vectors (
    tenant text NOT NULL,
    set_id bigint NOT NULL,
    chunk_id text NOT NULL,
    document_id text NOT NULL,
    dimensions integer NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (tenant, set_id, chunk_id)
);
CREATE INDEX chunk_vectors_of_document ON chunk_vectors (tenant, document_id);
-- HNSW needs a fixed number of dimensions: one partial index for each that is common. Others are scanned exactly. Above
-- 2,000 it takes numbers of half the size.
CREATE INDEX chunk_vectors_384 ON chunk_vectors USING hnsw ((embedding::vector(384)) vector_cosine_ops) WHERE dimensions = 384;
CREATE INDEX chunk_vectors_512 ON chunk_vectors USING hnsw ((embedding::vector(512)) vector_cosine_ops) WHERE dimensions = 512;
CREATE INDEX chunk_vectors_768 ON chunk_vectors USING hnsw ((embedding::vector(768)) vector_cosine_ops) WHERE dimensions = 768;
CREATE INDEX chunk_vectors_1024 ON chunk_vectors USING hnsw ((embedding::vector(1024)) vector_cosine_ops) WHERE dimensions = 1024;
CREATE INDEX chunk_vectors_1536 ON chunk_vectors USING hnsw ((embedding::vector(1536)) vector_cosine_ops) WHERE dimensions = 1536;
CREATE INDEX chunk_vectors_2048 ON chunk_vectors USING hnsw ((embedding::halfvec(2048)) halfvec_cosine_ops) WHERE dimensions = 2048;
CREATE INDEX chunk_vectors_2560 ON chunk_vectors USING hnsw ((embedding::halfvec(2560)) halfvec_cosine_ops) WHERE dimensions = 2560;
CREATE INDEX chunk_vectors_3072 ON chunk_vectors USING hnsw ((embedding::halfvec(3072)) halfvec_cosine_ops) WHERE dimensions = 3072;

-- Documents whose passages have no vectors, or not all, in a set: what is left to embed. A row goes with the last one.
CREATE TABLE pending_vectors (
    tenant text NOT NULL,
    set_id bigint NOT NULL,
    document_id text NOT NULL,
    sequence bigint NOT NULL, -- of the document's version
    claimed_until timestamptz NOT NULL DEFAULT '-infinity',
    error text,
    PRIMARY KEY (tenant, set_id, document_id)
);
CREATE INDEX pending_vectors_due ON pending_vectors (tenant, claimed_until);

-- The model that a tenant has chosen in place of the settings' one.
CREATE TABLE vector_choices (
    tenant text PRIMARY KEY,
    model text NOT NULL,
    asked_dimensions integer
);

-- A tenant's last distinct queries, which a new set is compared by.
CREATE TABLE asked_queries (
    tenant text NOT NULL,
    query text NOT NULL,
    query_sha256 bytea NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, query_sha256)
);

ALTER TABLE vector_sets ENABLE ROW LEVEL SECURITY;
ALTER TABLE vector_sets FORCE ROW LEVEL SECURITY;
ALTER TABLE chunk_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE chunk_vectors FORCE ROW LEVEL SECURITY;
ALTER TABLE pending_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE pending_vectors FORCE ROW LEVEL SECURITY;
ALTER TABLE vector_choices ENABLE ROW LEVEL SECURITY;
ALTER TABLE vector_choices FORCE ROW LEVEL SECURITY;
ALTER TABLE asked_queries ENABLE ROW LEVEL SECURITY;
ALTER TABLE asked_queries FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON vector_sets USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);
CREATE POLICY tenant ON chunk_vectors USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);
CREATE POLICY tenant ON pending_vectors USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);
CREATE POLICY tenant ON vector_choices USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);
CREATE POLICY tenant ON asked_queries USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- What an earlier version stored, and one that still runs stores, stays where it is; the service brings it into the
-- tenant's set, document by document.
ALTER TABLE chunks ALTER COLUMN embedding DROP NOT NULL;
SELECT set_config('wayline.tenant', '*', true);
INSERT INTO vector_sets (tenant, model, dimensions, state)
SELECT DISTINCT ON (tenant) tenant, embedding_model, dimensions, 'live' FROM corpora
WHERE chunks > 0
ORDER BY tenant, chunks DESC;
INSERT INTO pending_vectors (tenant, set_id, document_id, sequence)
SELECT tenant, set_id, document_id, sequence FROM documents JOIN vector_sets USING (tenant)
WHERE status IN ('ready', 'indexing', 'queued') AND chunks_total > 0;

-- migrate:down
DROP TABLE asked_queries, vector_choices, pending_vectors, chunk_vectors, vector_sets;
DELETE FROM chunks WHERE embedding IS NULL;
ALTER TABLE chunks ALTER COLUMN embedding SET NOT NULL;
