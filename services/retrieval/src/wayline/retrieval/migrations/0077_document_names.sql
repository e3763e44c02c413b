-- migrate:up

-- Documents are found by what people call them.
CREATE INDEX documents_by_name ON documents (tenant, name) WHERE status <> 'deleted';

-- migrate:down
DROP INDEX documents_by_name;
