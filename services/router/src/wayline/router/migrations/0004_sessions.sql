-- migrate:up

-- What the last job of a session left in a provider's cache, for as long as the provider keeps it.
CREATE TABLE session_caches (
    tenant text NOT NULL,
    session_id text NOT NULL,
    agent text NOT NULL,
    agent_version integer NOT NULL,
    model text NOT NULL, -- provider/model
    prefix_tokens integer NOT NULL, -- of the tools and the system prompt
    until timestamptz NOT NULL,
    PRIMARY KEY (tenant, session_id)
);
CREATE INDEX session_caches_until ON session_caches (tenant, until);

ALTER TABLE session_caches ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_caches FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON session_caches USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);

-- migrate:down
DROP TABLE session_caches;
