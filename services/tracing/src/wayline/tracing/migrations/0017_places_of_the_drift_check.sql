-- migrate:up

-- How far the logs were compared with the tables: a process that starts goes on from there.
CREATE TABLE drift_places (
    walk text PRIMARY KEY CHECK (walk IN ('new', 'again')),
    sequence bigint NOT NULL, -- of the stream of logs
    reached_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- migrate:down
DROP TABLE drift_places;
