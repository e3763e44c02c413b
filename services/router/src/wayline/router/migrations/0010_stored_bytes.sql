-- migrate:up

-- What was stored on the bus for a tenant on a day, in its job logs and in PAYLOADS; both keep it for 30 days.
CREATE TABLE stored_bytes (
    tenant text NOT NULL,
    day date NOT NULL, -- in UTC
    bytes bigint NOT NULL,
    PRIMARY KEY (tenant, day)
) WITH (fillfactor = 50);

ALTER TABLE stored_bytes ENABLE ROW LEVEL SECURITY;
ALTER TABLE stored_bytes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON stored_bytes USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
DROP TABLE stored_bytes;
