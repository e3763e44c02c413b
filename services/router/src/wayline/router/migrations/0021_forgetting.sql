-- migrate:up
-- Requests to forget a user, a subject or a job: how far each is, and what it erased. One that is done names nobody.
CREATE TABLE forgets (
    tenant text NOT NULL,
    forget_id text NOT NULL,
    what text NOT NULL CHECK (what IN ('user', 'subject', 'job')),
    user_id text, -- NULL once it is done
    job_id text,
    subject_type text,
    subject_id text,
    name_sha256 text NOT NULL, -- of the tenant, what it is and its name
    asked_by text NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    submitted_upto bigint, -- the last submission that is forgotten, too: later ones wait, and survive; NULL: all wait
    step text NOT NULL DEFAULT 'stopping' CHECK (step IN ('stopping', 'erasing', 'searching', 'done')),
    round integer NOT NULL DEFAULT 1,
    jobs integer NOT NULL DEFAULT 0,
    waits_for text,
    samples text[] NOT NULL DEFAULT '{}', -- removed texts to search for; none once it is done
    left_over jsonb, -- what the search at the end found
    done_at timestamptz,
    look_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- when a router goes on with it; infinity: never
    PRIMARY KEY (tenant, forget_id)
);
CREATE UNIQUE INDEX forgets_open ON forgets (tenant, name_sha256) WHERE step <> 'done';
CREATE INDEX forgets_due ON forgets (look_at) WHERE look_at < 'infinity';
CREATE INDEX forgets_of_users ON forgets (tenant, user_id) WHERE user_id IS NOT NULL;

-- The jobs that one is about, until what comes late of them is erased, too.
CREATE TABLE forget_jobs (
    tenant text NOT NULL,
    forget_id text NOT NULL,
    job_id text NOT NULL,
    batch integer, -- NULL: it is not known yet that it has ended
    PRIMARY KEY (tenant, forget_id, job_id),
    FOREIGN KEY (tenant, forget_id) REFERENCES forgets ON DELETE CASCADE
);
CREATE INDEX forget_jobs_of_batch ON forget_jobs (tenant, forget_id, batch);

-- What each store had of a batch: counted and noted before it is erased, so that no crash loses a count.
CREATE TABLE forget_counts (
    tenant text NOT NULL,
    forget_id text NOT NULL,
    store text NOT NULL,
    batch integer NOT NULL, -- below zero: what is of the user or the subject itself
    counts jsonb NOT NULL,
    kept jsonb NOT NULL DEFAULT '{}',
    erased_at timestamptz,
    PRIMARY KEY (tenant, forget_id, store, batch),
    FOREIGN KEY (tenant, forget_id) REFERENCES forgets ON DELETE CASCADE
);

-- The jobs of a user, and those below a job.
CREATE INDEX reservations_of_user ON reservations (tenant, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX reservations_below ON reservations USING gin (ancestors) WHERE ancestors <> '{}';

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['forgets', 'forget_jobs', 'forget_counts'] LOOP
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
DROP TABLE forget_counts, forget_jobs, forgets;
DROP INDEX reservations_below, reservations_of_user;
