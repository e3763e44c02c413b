-- migrate:up

-- Who reacts to finished jobs: services of a tenant, by a name that outlives their processes.
CREATE TABLE followers (
    tenant text NOT NULL,
    name text NOT NULL,
    since timestamptz NOT NULL DEFAULT clock_timestamp(), -- jobs that ended before are not for it
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, name)
) WITH (fillfactor = 70);

-- One row for each finished job and follower. A row that is done stays: the same end may be projected once more.
CREATE TABLE deliveries (
    id bigint GENERATED ALWAYS AS IDENTITY,
    tenant text NOT NULL,
    follower text NOT NULL,
    job_id text NOT NULL,
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'done', 'aside')),
    deliveries integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- of a job that is out: when it comes again
    reason text, -- why the last delivery failed
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, follower, job_id),
    FOREIGN KEY (tenant, follower) REFERENCES followers ON DELETE CASCADE
) WITH (fillfactor = 70);
CREATE INDEX deliveries_due ON deliveries (tenant, follower, due_at, id) WHERE state = 'waiting';
CREATE INDEX deliveries_noted ON deliveries USING brin (noted_at);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['followers', 'deliveries'] LOOP
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
DROP TABLE deliveries, followers;
