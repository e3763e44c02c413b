-- migrate:up

-- Messages that came very often: how often a handler began with them. A delivery alone says nothing of that.
CREATE TABLE begun_messages (
    consumer text NOT NULL,
    sequence bigint NOT NULL,
    begun integer NOT NULL DEFAULT 1,
    last_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer, sequence)
);

-- migrate:down
DROP TABLE begun_messages;
