-- migrate:up
CREATE TABLE authorizations (
    tenant text NOT NULL,
    server text NOT NULL,
    key_id text NOT NULL,
    -- The tokens, and the client and the authorization server they belong to.
    sealed bytea NOT NULL,
    -- When the authorization server refused to renew them: a person has to log in again.
    refused_at timestamptz,
    saved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, server),
    FOREIGN KEY (tenant, server) REFERENCES servers (tenant, name) ON DELETE CASCADE
);

-- Logins that a browser has not come back from.
CREATE TABLE logins (
    tenant text NOT NULL,
    state_sha256 text NOT NULL,
    server text NOT NULL,
    key_id text NOT NULL,
    sealed bytea NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, state_sha256),
    FOREIGN KEY (tenant, server) REFERENCES servers (tenant, name) ON DELETE CASCADE
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['authorizations', 'logins'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY tenant_only ON %I
                USING (current_setting(''wayline.tenant'', true) IN (tenant, ''*''))
                WITH CHECK (current_setting(''wayline.tenant'', true) IN (tenant, ''*''))',
            name
        );
    END LOOP;
END
$$;

-- migrate:down
DROP TABLE logins, authorizations;
