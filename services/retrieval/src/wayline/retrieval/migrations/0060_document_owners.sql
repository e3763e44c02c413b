-- migrate:up
-- Who sent a document, where that was said: all that is of a user can be erased.
CREATE TABLE document_owners (
    tenant text NOT NULL,
    document_id text NOT NULL,
    user_id text NOT NULL,
    PRIMARY KEY (tenant, document_id)
);
CREATE INDEX document_owners_of_user ON document_owners (tenant, user_id);

ALTER TABLE document_owners ENABLE ROW LEVEL SECURITY;
ALTER TABLE document_owners FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON document_owners USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);

-- migrate:down
DROP TABLE document_owners;
