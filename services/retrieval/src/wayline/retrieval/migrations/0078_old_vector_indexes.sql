-- migrate:up

-- Vectors are in sets (0022), and the indexes over those that earlier versions stored with the passages serve nobody: a
-- process of such a version that still runs looks at each vector. The column stays: a set takes from it what it can.
DROP INDEX chunks_vector_384, chunks_vector_512, chunks_vector_768, chunks_vector_1024, chunks_vector_1536;

-- migrate:down
CREATE INDEX chunks_vector_384 ON chunks USING hnsw ((embedding::vector(384)) vector_cosine_ops) WHERE dimensions = 384;
CREATE INDEX chunks_vector_512 ON chunks USING hnsw ((embedding::vector(512)) vector_cosine_ops) WHERE dimensions = 512;
CREATE INDEX chunks_vector_768 ON chunks USING hnsw ((embedding::vector(768)) vector_cosine_ops) WHERE dimensions = 768;
CREATE INDEX chunks_vector_1024 ON chunks USING hnsw ((embedding::vector(1024)) vector_cosine_ops) WHERE dimensions = 1024;
CREATE INDEX chunks_vector_1536 ON chunks USING hnsw ((embedding::vector(1536)) vector_cosine_ops) WHERE dimensions = 1536;
