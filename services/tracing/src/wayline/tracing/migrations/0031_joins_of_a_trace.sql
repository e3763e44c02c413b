-- migrate:up
-- Which jobs a trace joins, for a key of one user.
CREATE INDEX joined_traces_of ON joined_traces (tenant, trace_id);

-- migrate:down
DROP INDEX joined_traces_of;
