-- migrate:up

-- When it is looked whether one is due: once when it is wanted, and then when it will be.
ALTER TABLE memory_summaries ADD COLUMN look_at timestamptz NOT NULL DEFAULT '-infinity';

-- migrate:down

ALTER TABLE memory_summaries DROP COLUMN look_at;
