-- migrate:up

-- What each tenant has in the object store of uploads on the bus, by object: counted before it is stored there, until it
-- is deleted or as old as the store keeps anything.
CREATE TABLE uploads (
    tenant text NOT NULL,
    name text NOT NULL,
    bytes bigint NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, name)
);
ALTER TABLE uploads ENABLE ROW LEVEL SECURITY;
ALTER TABLE uploads FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON uploads USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
DROP TABLE uploads;
