-- migrate:up

-- Which version of an agent has a label, and which share of the jobs goes there that ask for none.
CREATE TABLE agent_labels (
    tenant text NOT NULL,
    agent text NOT NULL,
    label text NOT NULL,
    version integer NOT NULL,
    share double precision CHECK (share > 0 AND share <= 1), -- NULL: only the jobs that ask for it
    PRIMARY KEY (tenant, agent, label)
);

ALTER TABLE agent_labels ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent_labels FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON agent_labels USING (
    tenant = (SELECT current_setting('wayline.tenant', true))
    OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- With which version of its agent a job was admitted: it is so again however often it is asked for, and the next job of
-- its session follows it.
ALTER TABLE reservations ADD COLUMN agent_version integer, ADD COLUMN agent_label text;

-- migrate:down
ALTER TABLE reservations DROP COLUMN agent_label, DROP COLUMN agent_version;
DROP TABLE agent_labels;
