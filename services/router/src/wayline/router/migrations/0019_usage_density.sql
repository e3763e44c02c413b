-- migrate:up

-- How many tokens providers counted for each that was estimated, of whole prompts; null: no job has said it yet.
ALTER TABLE agent_usage ADD COLUMN density double precision;

-- migrate:down
ALTER TABLE agent_usage DROP COLUMN density;
