-- The labels of a job: those that it was submitted with and those that it was given later, but for those taken away.
CREATE OR REPLACE FUNCTION merged_tags(tags text[], added text[], removed text[]) RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(tag ORDER BY tag), '{}')
    FROM (SELECT unnest(tags) UNION SELECT unnest(added)) AS every (tag)
    WHERE tag <> ALL (coalesce(removed, '{}'))
$$;

-- What a job is found by, with these labels instead of those that are in there: `job_words` puts the same sign before them.
CREATE OR REPLACE FUNCTION words_with_tags(words tsvector, tags text[]) RETURNS tsvector
LANGUAGE sql IMMUTABLE AS $$
    SELECT ts_delete(words, ARRAY(SELECT lexeme FROM unnest(words) WHERE lexeme LIKE '#%'))
        || array_to_tsvector(ARRAY(SELECT '#' || tag FROM unnest(tags) AS tag))
$$;
