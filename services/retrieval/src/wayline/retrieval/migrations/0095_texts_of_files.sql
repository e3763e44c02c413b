-- migrate:up

-- What a model is given of a file that no model reads, such as a DOCX: the text that was read in it. `text_of` is the
-- hash of the bytes that it was read in: an older version of this service puts other bytes in their place without it.
ALTER TABLE originals
    ADD COLUMN IF NOT EXISTS text bytea,
    ADD COLUMN IF NOT EXISTS text_sha256 text,
    ADD COLUMN IF NOT EXISTS text_of text;
ALTER TABLE originals ALTER COLUMN text SET STORAGE EXTERNAL;

-- migrate:down
ALTER TABLE originals DROP COLUMN text, DROP COLUMN text_sha256, DROP COLUMN text_of;
