-- migrate:up

-- What an agent's recent jobs used of a model in a slot: averages in which a newer job weighs more than an older one.
CREATE TABLE agent_usage (
    tenant text NOT NULL,
    agent text NOT NULL,
    model text NOT NULL, -- provider/model
    slot text NOT NULL,
    jobs integer NOT NULL, -- that were counted
    calls double precision NOT NULL, -- of a job
    output_tokens double precision NOT NULL, -- of a call, thinking included
    longest_tokens double precision NOT NULL, -- of a job's longest call
    longest_deviation double precision NOT NULL, -- how far it is from that on average
    tools integer NOT NULL, -- definitions at the head of the newest job's prompts
    tools_tokens integer NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, agent, model, slot)
);
CREATE INDEX agent_usage_updated ON agent_usage (tenant, updated_at);

ALTER TABLE agent_usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent_usage FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON agent_usage USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
DROP TABLE agent_usage;
