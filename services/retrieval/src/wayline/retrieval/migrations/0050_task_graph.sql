-- migrate:up

-- Tasks that jobs planned, by the words of their names: what one job learned of them another one is told. No index on
-- words: a tenant has so few tasks that all of its own are read, and never another's.
CREATE TABLE tasks (
    tenant text NOT NULL,
    task_key text NOT NULL,
    name text NOT NULL,
    words text[] NOT NULL,
    source_job text NOT NULL,
    trust text NOT NULL CHECK (trust IN ('trusted', 'untrusted')),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, task_key)
);
CREATE INDEX tasks_newest ON tasks (tenant, seen_at DESC, task_key);

-- What a task needs done before it, with the words that say so and the job that found them.
CREATE TABLE task_edges (
    tenant text NOT NULL,
    task_key text NOT NULL,
    needs_key text NOT NULL,
    weight real NOT NULL,
    kind text NOT NULL,
    quote text NOT NULL,
    document_id text NOT NULL,
    source_job text NOT NULL,
    jobs integer NOT NULL DEFAULT 1,
    trust text NOT NULL CHECK (trust IN ('trusted', 'untrusted')),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, task_key, needs_key),
    FOREIGN KEY (tenant, task_key) REFERENCES tasks ON DELETE CASCADE,
    FOREIGN KEY (tenant, needs_key) REFERENCES tasks ON DELETE CASCADE
);
CREATE INDEX task_edges_needs ON task_edges (tenant, needs_key);
CREATE INDEX task_edges_of_document ON task_edges (tenant, document_id) WHERE document_id <> '';

-- Whose tasks are stored already: a job's are stored once.
CREATE TABLE task_graph_jobs (
    tenant text NOT NULL,
    job_id text NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, job_id)
);

ALTER TABLE tasks ENABLE ROW LEVEL SECURITY;
ALTER TABLE tasks FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tasks USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);
ALTER TABLE task_edges ENABLE ROW LEVEL SECURITY;
ALTER TABLE task_edges FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON task_edges USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);
ALTER TABLE task_graph_jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE task_graph_jobs FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON task_graph_jobs USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);

-- migrate:down
DROP TABLE task_graph_jobs;
DROP TABLE task_edges;
DROP TABLE tasks;
