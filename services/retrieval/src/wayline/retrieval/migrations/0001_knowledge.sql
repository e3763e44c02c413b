-- migrate:up

-- What a document is and how far its ingestion is. A deleted document that may still have an index message on its way
-- stays as a tombstone (deleted_sequence) until the queue is past it, so that the late message does not bring it back.
CREATE TABLE documents (
    tenant text NOT NULL,
    document_id text NOT NULL,
    name text NOT NULL,
    media_type text NOT NULL,
    status text NOT NULL CHECK (status IN ('queued', 'indexing', 'ready', 'failed', 'deleted')),
    chunks_done integer NOT NULL DEFAULT 0,
    chunks_total integer,
    size_bytes bigint NOT NULL DEFAULT 0,
    error text,
    metadata jsonb NOT NULL DEFAULT '{}',
    embedding_model text,
    sequence bigint NOT NULL DEFAULT 0,
    deleted_sequence bigint,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, document_id)
);
CREATE INDEX documents_newest ON documents (tenant, created_at DESC, document_id);

-- Words and vector in one row: no second store to keep in step.
CREATE TABLE chunks (
    tenant text NOT NULL,
    chunk_id text NOT NULL,
    document_id text NOT NULL,
    position integer NOT NULL,
    name text NOT NULL,
    text text NOT NULL,
    metadata jsonb NOT NULL,
    words tsvector NOT NULL,
    words_count integer NOT NULL,
    embedding_model text NOT NULL,
    dimensions integer NOT NULL,
    embedding vector NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, chunk_id)
) WITH (toast_tuple_target = 4080);
-- Ranking reads the words of every candidate: keep them in the row, and let the vector go out of line instead.
ALTER TABLE chunks ALTER COLUMN words SET STORAGE MAIN;
CREATE INDEX chunks_of_document ON chunks (tenant, document_id);
CREATE INDEX chunks_words ON chunks USING gin (words);
-- HNSW needs a fixed number of dimensions: one partial index for each that is common. Others are scanned exactly.
CREATE INDEX chunks_vector_384 ON chunks USING hnsw ((embedding::vector(384)) vector_cosine_ops) WHERE dimensions = 384;
CREATE INDEX chunks_vector_512 ON chunks USING hnsw ((embedding::vector(512)) vector_cosine_ops) WHERE dimensions = 512;
CREATE INDEX chunks_vector_768 ON chunks USING hnsw ((embedding::vector(768)) vector_cosine_ops) WHERE dimensions = 768;
CREATE INDEX chunks_vector_1024 ON chunks USING hnsw ((embedding::vector(1024)) vector_cosine_ops) WHERE dimensions = 1024;
CREATE INDEX chunks_vector_1536 ON chunks USING hnsw ((embedding::vector(1536)) vector_cosine_ops) WHERE dimensions = 1536;

-- In how many chunks of a tenant each word is, and how much there is of each embedding model: what BM25 weighs words by,
-- kept in step by the transaction that stores or deletes a document's chunks.
CREATE TABLE terms (
    tenant text NOT NULL,
    term text COLLATE "C" NOT NULL,
    chunks bigint NOT NULL,
    PRIMARY KEY (tenant, term)
) WITH (fillfactor = 70);
CREATE TABLE corpora (
    tenant text NOT NULL,
    embedding_model text NOT NULL,
    dimensions integer NOT NULL,
    chunks bigint NOT NULL,
    words bigint NOT NULL,
    PRIMARY KEY (tenant, embedding_model, dimensions)
) WITH (fillfactor = 50);

ALTER TABLE documents ENABLE ROW LEVEL SECURITY;
ALTER TABLE documents FORCE ROW LEVEL SECURITY;
ALTER TABLE chunks ENABLE ROW LEVEL SECURITY;
ALTER TABLE chunks FORCE ROW LEVEL SECURITY;
ALTER TABLE terms ENABLE ROW LEVEL SECURITY;
ALTER TABLE terms FORCE ROW LEVEL SECURITY;
ALTER TABLE corpora ENABLE ROW LEVEL SECURITY;
ALTER TABLE corpora FORCE ROW LEVEL SECURITY;
-- The setting is read once a statement, not once a row.
CREATE POLICY tenant ON documents USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);
CREATE POLICY tenant ON chunks USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);
CREATE POLICY tenant ON terms USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);
CREATE POLICY tenant ON corpora USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- Under row-level security an index serves only conditions that cannot leak a row they reject. Matching words raises
-- nothing and says nothing, but Postgres does not declare it so; without this, every keyword search scans the tenant.
DO $$
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) LEAKPROOF;
    END IF;
END
$$;

-- Text as the full-text parser should see it: it would take `os.path.join` and `a/b` for one word each.
CREATE FUNCTION spaced(body text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN translate(body, '!"#$%&()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 31));

-- A chunk's words: the document's name (twice: measured, it says more than a word of the text) as A, the headings
-- above it as B, its text as D.
CREATE FUNCTION words_of(name text, headings text, body text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN setweight(to_tsvector('english', spaced(name || ' ' || name)), 'A')
    || setweight(to_tsvector('english', spaced(headings)), 'B')
    || to_tsvector('english', spaced(body));

-- How often a term is in a chunk. With all weights 1, ts_rank of one term is (1 + 1/4 + … + 1/n²) / (π²/6); what is
-- missing to the whole series is close to 1 / (n + 1/2). Unnesting the vector would say the same fifty times slower.
-- Not STRICT: that would keep Postgres from inlining it.
CREATE FUNCTION occurrences(words tsvector, term tsquery) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN floor(1 / (1.64493406685 * greatest(1e-4, 1 - ts_rank('{1,1,1,1}', words, term))) - 0.3);

-- migrate:down
DROP TABLE documents, chunks, terms, corpora;
DROP FUNCTION occurrences, words_of, spaced;
