-- migrate:up

-- Until then a call that has ended is left to the search that it was made for, whose caller may report it.
ALTER TABLE embedding_calls ADD COLUMN report_from timestamptz NOT NULL DEFAULT now();

-- migrate:down
ALTER TABLE embedding_calls DROP COLUMN report_from;
