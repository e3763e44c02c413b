-- migrate:up

-- What is paused. Of a lane, which all tenants have, the tenant is empty.
CREATE TABLE pauses (
    kind text NOT NULL,
    tenant text NOT NULL,
    name text NOT NULL,
    reason text NOT NULL,
    paused_by text NOT NULL,
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    at_once boolean NOT NULL,
    PRIMARY KEY (kind, tenant, name)
);

ALTER TABLE pauses ENABLE ROW LEVEL SECURITY;
ALTER TABLE pauses FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON pauses USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- How many jobs run at once: of an agent, of a user, of an API key. The name * is each that has no row of its own.
CREATE TABLE running_limits (
    tenant text NOT NULL,
    whose text NOT NULL,
    name text NOT NULL,
    max_running integer NOT NULL CHECK (max_running > 0),
    when_full text NOT NULL,
    PRIMARY KEY (tenant, whose, name)
);

ALTER TABLE running_limits ENABLE ROW LEVEL SECURITY;
ALTER TABLE running_limits FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON running_limits USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- Jobs that have asked whether they may run, where something is paused or limited: those that have a place, and those
-- that wait, parked, for one or for the end of a pause. A job that is parked for anything else has no row.
CREATE TABLE run_permits (
    tenant text NOT NULL,
    job_id text NOT NULL,
    state text NOT NULL CHECK (state IN ('running', 'waiting', 'paused')),
    at bigint, -- of a running one, the record that made it runnable; else the one that parked it; NULL: it is not parked yet
    lane text NOT NULL,
    agent text NOT NULL,
    user_id text,
    key_id text,
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    told boolean NOT NULL DEFAULT true, -- false: it was given a place, and its ticket may not have been queued yet
    PRIMARY KEY (tenant, job_id)
);

CREATE INDEX run_permits_by_agent ON run_permits (tenant, agent, state);
CREATE INDEX run_permits_by_user ON run_permits (tenant, user_id, state) WHERE user_id IS NOT NULL;
CREATE INDEX run_permits_by_key ON run_permits (tenant, key_id, state) WHERE key_id IS NOT NULL;
CREATE INDEX run_permits_by_state ON run_permits (state, since);

ALTER TABLE run_permits ENABLE ROW LEVEL SECURITY;
ALTER TABLE run_permits FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON run_permits USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
DROP TABLE run_permits;
DROP TABLE running_limits;
DROP TABLE pauses;
