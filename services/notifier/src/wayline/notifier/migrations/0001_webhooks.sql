-- migrate:up

CREATE TABLE webhooks (
    tenant text NOT NULL,
    name text NOT NULL,
    uid text NOT NULL, -- of this webhook: one that is created again under the name has another
    version integer NOT NULL DEFAULT 1,
    config text NOT NULL, -- JSON; of the webhook `jobs` without an address
    key_id text NOT NULL,
    sealed bytea NOT NULL, -- its secret
    former_key_id text,
    former_sealed bytea, -- the secret before the last rotation
    former_until timestamptz,
    enabled boolean NOT NULL,
    disabled_at timestamptz, -- its failures disabled it
    disabled_reason text,
    failing_since timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, name),
    UNIQUE (tenant, uid)
);

-- One row an event and webhook. Its id follows from both: an event that is read again makes no second one.
CREATE TABLE deliveries (
    tenant text NOT NULL,
    id text NOT NULL,
    uid text NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    type text NOT NULL,
    job_id text,
    user_id text,
    url text, -- null: its webhook's, as it is when it is sent
    body text NOT NULL,
    state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
    retried boolean NOT NULL DEFAULT true, -- a failed try is followed by another
    attempts integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL, -- of one that is being sent: when its claim ends
    claim text, -- of the process that is sending it
    answers jsonb NOT NULL DEFAULT '[]',
    reason text NOT NULL DEFAULT '',
    occurred_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    ended_at timestamptz,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, uid) REFERENCES webhooks (tenant, uid) ON DELETE CASCADE
);
CREATE INDEX deliveries_pending ON deliveries (tenant, uid, due_at) WHERE state = 'pending';
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE state = 'pending';
CREATE INDEX deliveries_claimed ON deliveries (tenant, uid) WHERE state = 'pending' AND claim IS NOT NULL;
CREATE INDEX deliveries_shown ON deliveries (tenant, uid, number);
CREATE INDEX deliveries_failed ON deliveries (tenant, uid, occurred_at) WHERE state = 'failed';
CREATE INDEX deliveries_of_job ON deliveries (tenant, job_id);
CREATE INDEX deliveries_old ON deliveries USING brin (created_at);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['webhooks', 'deliveries'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING (
                tenant = (SELECT current_setting(''wayline.tenant'', true))
                OR (SELECT current_setting(''wayline.tenant'', true)) = ''*'')',
            name
        );
    END LOOP;
END
$$;

-- migrate:down

DROP TABLE deliveries, webhooks;
