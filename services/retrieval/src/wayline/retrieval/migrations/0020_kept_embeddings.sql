-- migrate:up

-- Embeddings as they come from a provider, by model and text, so that none is paid for twice: not after a rate limit, a
-- crash, or a new version of a document. Each tenant has its own: what one has embedded is no other's to find out.
CREATE TABLE kept_embeddings (
    tenant text NOT NULL,
    model text NOT NULL, -- with the dimensions that were asked for
    text_sha256 bytea NOT NULL,
    embedding vector NOT NULL,
    bytes integer NOT NULL,
    used_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, model, text_sha256)
);
CREATE INDEX kept_embeddings_texts ON kept_embeddings (tenant, text_sha256);
CREATE INDEX kept_embeddings_unused ON kept_embeddings (used_at);
ALTER TABLE kept_embeddings ENABLE ROW LEVEL SECURITY;
ALTER TABLE kept_embeddings FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON kept_embeddings USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- Of what was embedded for a passage; null where an earlier version stored it.
ALTER TABLE chunks ADD COLUMN text_sha256 bytea;

-- migrate:down
ALTER TABLE chunks DROP COLUMN text_sha256;
DROP TABLE kept_embeddings;
