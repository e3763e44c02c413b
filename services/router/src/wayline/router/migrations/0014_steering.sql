-- migrate:up

ALTER TABLE session_turns
    ADD COLUMN steers boolean NOT NULL DEFAULT false, -- its words are for the job that runs
    ADD COLUMN steered_at timestamptz; -- when that job was told
CREATE INDEX session_turns_steering ON session_turns (tenant, session_id, number)
WHERE steers AND steered_at IS NULL AND ended_at IS NULL;

-- migrate:down
DROP FUNCTION IF EXISTS take_turns(text, text[], text[], text[], text[], text[], integer, timestamptz);
DROP INDEX session_turns_steering;
ALTER TABLE session_turns DROP COLUMN steers, DROP COLUMN steered_at;
