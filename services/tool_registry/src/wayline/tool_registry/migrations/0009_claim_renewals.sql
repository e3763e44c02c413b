-- migrate:up
-- Who renews the tokens now: no connection is held while an authorization server is asked.
ALTER TABLE authorizations ADD COLUMN claim text, ADD COLUMN claimed_until timestamptz;

-- migrate:down
ALTER TABLE authorizations DROP COLUMN claim, DROP COLUMN claimed_until;
