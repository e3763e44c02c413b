-- migrate:up
-- Empty: the login of the tenant.
ALTER TABLE authorizations ADD COLUMN user_id text NOT NULL DEFAULT '';
-- Another one after each login: what was connected with an earlier one is left.
ALTER TABLE authorizations ADD COLUMN logged_in_at timestamptz NOT NULL DEFAULT clock_timestamp();
ALTER TABLE authorizations DROP CONSTRAINT authorizations_pkey;
ALTER TABLE authorizations ADD PRIMARY KEY (tenant, server, user_id);
CREATE INDEX authorizations_of_users ON authorizations (tenant, user_id);

ALTER TABLE logins ADD COLUMN user_id text NOT NULL DEFAULT '';

-- migrate:down
-- A row of a user would become the tenant's.
DELETE FROM logins WHERE user_id <> '';
ALTER TABLE logins DROP COLUMN user_id;
DELETE FROM authorizations WHERE user_id <> '';
DROP INDEX authorizations_of_users;
ALTER TABLE authorizations DROP CONSTRAINT authorizations_pkey;
ALTER TABLE authorizations ADD PRIMARY KEY (tenant, server);
ALTER TABLE authorizations DROP COLUMN user_id, DROP COLUMN logged_in_at;
