-- migrate:up

-- Where a passage stands in its document's text, in characters, and the white space before it, so that passages give the
-- text again as it was read. Null: it was stored before that was kept.
ALTER TABLE chunks
    ADD COLUMN IF NOT EXISTS starts_at integer,
    ADD COLUMN IF NOT EXISTS ends_at integer,
    ADD COLUMN IF NOT EXISTS space_before text;

-- migrate:down
ALTER TABLE chunks DROP COLUMN starts_at, DROP COLUMN ends_at, DROP COLUMN space_before;
