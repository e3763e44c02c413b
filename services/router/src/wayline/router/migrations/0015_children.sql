-- migrate:up

-- Of a job that another one started: the jobs above it, the one that started it first. They share their budgets with it.
ALTER TABLE reservations ADD COLUMN ancestors text[] NOT NULL DEFAULT '{}';
-- What all jobs below hold or have cost, at most.
ALTER TABLE reservations ADD COLUMN children_usd numeric NOT NULL DEFAULT 0;

-- migrate:down
ALTER TABLE reservations DROP COLUMN children_usd;
ALTER TABLE reservations DROP COLUMN ancestors;
