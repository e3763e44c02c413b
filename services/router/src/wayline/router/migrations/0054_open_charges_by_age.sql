-- migrate:up transaction:false

CREATE INDEX CONCURRENTLY reservations_of_open_charges ON reservations (reserved_at)
WHERE NOT is_settled_charge AND starts_with(job_id, 'tool/');
DROP INDEX CONCURRENTLY IF EXISTS reservations_of_tool_calls;

-- migrate:down transaction:false

CREATE INDEX CONCURRENTLY reservations_of_tool_calls ON reservations (reserved_at)
WHERE state = 'reserved' AND starts_with(job_id, 'tool/');
DROP INDEX CONCURRENTLY IF EXISTS reservations_of_open_charges;
