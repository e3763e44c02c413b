-- migrate:up
-- A session is shown with what all its jobs spent.
CREATE INDEX ledger_of_sessions ON ledger (tenant, session_id) WHERE session_id IS NOT NULL;

-- migrate:down
DROP INDEX ledger_of_sessions;
