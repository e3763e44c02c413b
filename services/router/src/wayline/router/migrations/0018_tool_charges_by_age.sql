-- migrate:up

-- Calls of tools outside of any job whose money is held: those that nobody counts any more are looked for by age.
CREATE INDEX reservations_of_tool_calls ON reservations (reserved_at)
WHERE state = 'reserved' AND starts_with(job_id, 'tool/');

-- migrate:down

DROP INDEX reservations_of_tool_calls;
