-- migrate:up

-- What a change took away, so that it can be undone; `run_id`: the consolidation that it is part of.
ALTER TABLE fact_changes ADD COLUMN run_id text;
ALTER TABLE fact_changes ADD COLUMN before jsonb;
CREATE INDEX fact_changes_of_run ON fact_changes (tenant, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX facts_due ON facts (expires_at) WHERE retired_at IS NULL AND expires_at IS NOT NULL;

-- migrate:down

DROP INDEX facts_due;
DROP INDEX fact_changes_of_run;
ALTER TABLE fact_changes DROP COLUMN before;
ALTER TABLE fact_changes DROP COLUMN run_id;
