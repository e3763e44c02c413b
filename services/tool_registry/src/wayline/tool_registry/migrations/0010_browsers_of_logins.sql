-- migrate:up
-- Of the browser that went on from the login's page: no other one may finish it. Null: none has opened it.
ALTER TABLE logins ADD COLUMN browser_sha256 text;

-- migrate:down
ALTER TABLE logins DROP COLUMN browser_sha256;
