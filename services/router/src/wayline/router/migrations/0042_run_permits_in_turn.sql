-- migrate:up transaction:false

-- Whose turn it is, of the jobs of a tenant that wait for a place; and which have one. Not only of these: the session's
-- kept plans would count the jobs of an agent by the smaller index.
CREATE INDEX CONCURRENTLY run_permits_in_turn ON run_permits (tenant, state, since, job_id);
-- Given a place by a router that may have died.
CREATE INDEX CONCURRENTLY run_permits_untold ON run_permits (since) WHERE NOT told;

-- migrate:down transaction:false
DROP INDEX CONCURRENTLY run_permits_untold;
DROP INDEX CONCURRENTLY run_permits_in_turn;
