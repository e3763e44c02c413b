-- migrate:up

-- A document's own bytes, for jobs to be given: deleted with it, replaced with its chunks. Documents of before have none.
CREATE TABLE originals (
    tenant text NOT NULL,
    document_id text NOT NULL,
    content bytea NOT NULL,
    sha256 text NOT NULL,
    media_type text NOT NULL,
    width integer,
    height integer,
    pages integer,
    text_bytes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, document_id)
);
-- Out of line and not compressed: a piece is cut out without the rest, and most of what is uploaded is compressed already.
ALTER TABLE originals ALTER COLUMN content SET STORAGE EXTERNAL;

ALTER TABLE originals ENABLE ROW LEVEL SECURITY;
ALTER TABLE originals FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON originals USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
DROP TABLE originals;
