-- migrate:up
-- A tenant's newest spans first; each day's table gets it, those to come too.
CREATE INDEX spans_newest ON spans (tenant, start DESC, trace_id DESC, span_id DESC);

-- migrate:down
DROP INDEX spans_newest;
