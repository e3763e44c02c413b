-- migrate:up
ALTER TABLE jobs ADD COLUMN tags_added text[], ADD COLUMN tags_removed text[];
COMMENT ON COLUMN jobs.tags_added IS 'Labels it was given after its submission; `tags` holds all. The projection of a log leaves it alone.';

-- migrate:down
ALTER TABLE jobs DROP COLUMN tags_added, DROP COLUMN tags_removed;
