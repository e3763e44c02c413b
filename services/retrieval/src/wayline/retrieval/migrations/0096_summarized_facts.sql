-- migrate:up

-- The summary that took a fact's place, as long as it does.
ALTER TABLE facts ADD COLUMN summarized_in text;
CREATE INDEX facts_summarized ON facts (tenant, summarized_in) WHERE summarized_in IS NOT NULL;

-- migrate:down
DROP INDEX facts_summarized;
ALTER TABLE facts DROP COLUMN summarized_in;
