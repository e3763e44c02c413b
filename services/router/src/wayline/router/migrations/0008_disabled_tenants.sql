-- migrate:up
ALTER TABLE tenants ADD COLUMN disabled_at timestamptz, ADD COLUMN disabled_reason text NOT NULL DEFAULT '';

-- migrate:down
ALTER TABLE tenants DROP COLUMN disabled_reason, DROP COLUMN disabled_at;
