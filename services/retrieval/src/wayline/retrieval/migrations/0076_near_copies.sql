-- migrate:up

-- Which other document has nearly the same text, told when this one was indexed.
ALTER TABLE documents
    ADD COLUMN signature bytea,
    ADD COLUMN near_duplicate_of text,
    ADD COLUMN near_duplicate_share real;

-- Keys under which documents of nearly the same text meet.
CREATE TABLE document_bands (
    tenant text NOT NULL,
    band bigint NOT NULL,
    document_id text NOT NULL,
    PRIMARY KEY (tenant, band, document_id)
);
CREATE INDEX document_bands_of ON document_bands (tenant, document_id);

ALTER TABLE document_bands ENABLE ROW LEVEL SECURITY;
ALTER TABLE document_bands FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON document_bands USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);

-- migrate:down
DROP TABLE document_bands;
ALTER TABLE documents
    DROP COLUMN signature, DROP COLUMN near_duplicate_of, DROP COLUMN near_duplicate_share;
