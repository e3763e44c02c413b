-- migrate:up
-- The hash of what was shown to the person who saved a server: what it offers first is approved where it is that.
ALTER TABLE servers ADD COLUMN shown_sha256 text;

-- migrate:down
ALTER TABLE servers DROP COLUMN shown_sha256;
