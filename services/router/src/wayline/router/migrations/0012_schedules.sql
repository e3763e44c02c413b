-- migrate:up

-- A job that the router submits by itself. What comes next stands in the row: no timer of a process is needed.
CREATE TABLE schedules (
    tenant text NOT NULL,
    name text NOT NULL,
    uid text NOT NULL, -- random: one that was deleted and created again is another one
    version integer NOT NULL DEFAULT 1,
    config text NOT NULL, -- JSON; as text it may hold what jsonb refuses
    next_at timestamptz, -- NULL: it is disabled, or no moment is left
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, name)
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;

-- What became of each moment that has come, decided once and in the statement that plans the next.
CREATE TABLE firings (
    tenant text NOT NULL,
    job_id text NOT NULL, -- derived from schedule, version and moment
    schedule text NOT NULL,
    uid text NOT NULL,
    version integer NOT NULL,
    due_at timestamptz NOT NULL,
    decided_at timestamptz NOT NULL,
    cause text NOT NULL CHECK (cause IN ('due', 'run')),
    outcome text NOT NULL CHECK (outcome IN ('fired', 'skipped', 'refused')),
    reason text NOT NULL DEFAULT '',
    missed integer NOT NULL DEFAULT 0,
    submission text, -- JSON that is still to be published; NULL: nothing is
    PRIMARY KEY (tenant, job_id)
);
CREATE INDEX firings_of_schedule ON firings (tenant, uid, due_at DESC);
CREATE INDEX firings_unsent ON firings (decided_at) WHERE submission IS NOT NULL;
CREATE INDEX firings_decided ON firings (decided_at);

ALTER TABLE schedules ENABLE ROW LEVEL SECURITY;
ALTER TABLE schedules FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON schedules USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);
ALTER TABLE firings ENABLE ROW LEVEL SECURITY;
ALTER TABLE firings FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON firings USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
DROP TABLE firings;
DROP TABLE schedules;
