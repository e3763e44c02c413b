-- migrate:up

-- Whether a call of a tool outside of any job was counted. It stays false for a job: an index over `state` is written
-- anew for each job that ends.
ALTER TABLE reservations ADD COLUMN is_settled_charge boolean NOT NULL DEFAULT false;

-- migrate:down

ALTER TABLE reservations DROP COLUMN is_settled_charge;
