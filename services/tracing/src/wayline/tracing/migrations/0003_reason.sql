-- migrate:up
ALTER TABLE jobs ADD COLUMN reason text; -- why its answer is not all that was asked for, or why it was cancelled

-- migrate:down
ALTER TABLE jobs DROP COLUMN reason;
