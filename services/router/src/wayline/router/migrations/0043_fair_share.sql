-- migrate:up

-- What a tenant's tickets weigh where several tenants wait in one lane.
ALTER TABLE tenants ADD COLUMN weight integer NOT NULL DEFAULT 1 CHECK (weight BETWEEN 1 AND 100);

-- Of each lane, how far its tenants have come in their turns. The row's lock is the right to give turns.
CREATE TABLE lane_turns (
    lane text PRIMARY KEY,
    turns jsonb NOT NULL DEFAULT '{}',
    given_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- migrate:down
DROP TABLE lane_turns;
ALTER TABLE tenants DROP COLUMN weight;
