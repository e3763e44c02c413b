-- migrate:up

-- What of its description was changed since it was sent: a later version that says nothing of it leaves it so.
ALTER TABLE documents ADD COLUMN changed text[] NOT NULL DEFAULT '{}';
-- What the job had read that planned a task: its name may be known from there alone.
ALTER TABLE tasks ADD COLUMN document_ids text[] NOT NULL DEFAULT '{}';

-- migrate:down
ALTER TABLE tasks DROP COLUMN document_ids;
ALTER TABLE documents DROP COLUMN changed;
