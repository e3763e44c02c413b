-- migrate:up

-- Deleted documents whose objects on the bus, or messages, are still to be waited for: few, and looked for every minute.
CREATE INDEX documents_deleted ON documents (tenant, document_id) WHERE status = 'deleted';

-- migrate:down
DROP INDEX documents_deleted;
