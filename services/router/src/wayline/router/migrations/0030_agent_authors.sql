-- migrate:up
ALTER TABLE agents ADD COLUMN saved_by text NOT NULL DEFAULT '';
COMMENT ON COLUMN agents.saved_by IS 'The name of the API key that saved this version. Empty: it was bundled, or saved by a version before.';

-- migrate:down
ALTER TABLE agents DROP COLUMN saved_by;
