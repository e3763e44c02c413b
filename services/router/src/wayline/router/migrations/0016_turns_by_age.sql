-- migrate:up

CREATE INDEX session_turns_taken ON session_turns (taken_at);

-- migrate:down
DROP INDEX session_turns_taken;
