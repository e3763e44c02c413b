-- migrate:up

UPDATE reservations SET is_settled_charge = true WHERE state = 'settled' AND starts_with(job_id, 'tool/');

-- migrate:down

UPDATE reservations SET is_settled_charge = false WHERE is_settled_charge;
