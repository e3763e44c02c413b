-- migrate:up

-- When the user said what a fact rests on: the same words in a later job are the same saying.
ALTER TABLE facts ADD COLUMN quote_at timestamptz;

-- migrate:down

ALTER TABLE facts DROP COLUMN quote_at;
