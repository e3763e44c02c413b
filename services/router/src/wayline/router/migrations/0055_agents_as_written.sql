-- migrate:up

-- `config` with its keys in the order in which they were sent, which jsonb does not keep: models answer in the order of a
-- schema's fields. Null where an older version saved the agent.
ALTER TABLE agents ADD COLUMN written json;

-- migrate:down

ALTER TABLE agents DROP COLUMN written;
