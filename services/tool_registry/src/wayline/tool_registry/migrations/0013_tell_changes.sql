-- migrate:up

-- The waiting definition of which a notice was published.
ALTER TABLE definitions ADD COLUMN told_sha256 text;
CREATE INDEX definitions_untold ON definitions (waiting_since)
WHERE waiting_sha256 IS NOT NULL AND told_sha256 IS DISTINCT FROM waiting_sha256;

-- migrate:down

DROP INDEX definitions_untold;
ALTER TABLE definitions DROP COLUMN told_sha256;
