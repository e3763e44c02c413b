-- migrate:up

-- Where a document belongs, who may find it (null: everybody) and until when.
ALTER TABLE documents
    ADD COLUMN IF NOT EXISTS collection text,
    ADD COLUMN IF NOT EXISTS audience text[],
    ADD COLUMN IF NOT EXISTS valid_until timestamptz;
CREATE INDEX documents_of_some ON documents (tenant) WHERE audience IS NOT NULL OR valid_until IS NOT NULL;

-- A pair of a document's metadata as a word that holds its tenant; without a value: that the key is there.
CREATE FUNCTION filter_word(tenant text, key text, value jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN tenant || '~' || md5(key) || CASE
    WHEN value IS NULL THEN ''
    WHEN jsonb_typeof(value) = 'number' THEN '=' || md5(trim_scale((value #>> '{}')::numeric)::text)
    ELSE '=' || md5(value::text)
END;

-- All such words of a document. As full-text words, because row-level security lets no other index serve conditions on
-- lists; with their tenant, so that nobody's rows are read for another.
CREATE FUNCTION filter_words(tenant text, collection text, metadata jsonb) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array_to_tsvector(ARRAY(
    SELECT tenant || '~'
    UNION SELECT filter_word(tenant, key, NULL) FROM jsonb_object_keys(metadata) AS key
    UNION SELECT filter_word(tenant, key, value) FROM jsonb_each(metadata)
    UNION SELECT filter_word(tenant, key, one)
        FROM jsonb_each(metadata), jsonb_array_elements(CASE jsonb_typeof(value) WHEN 'array' THEN value ELSE '[]' END) AS one
    UNION SELECT tenant || '~in~' || md5(collection) WHERE collection IS NOT NULL
));
CREATE INDEX documents_by_filter ON documents USING gin (filter_words(tenant, collection, metadata));

-- A word of the index, and what is left of it without one of its letters: misspelt words share one of these.
CREATE FUNCTION term_deletions(tenant text, term text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array_to_tsvector(ARRAY(
    SELECT tenant || '~' || term
    UNION SELECT tenant || '~' || overlay(term PLACING '' FROM at FOR 1) FROM generate_series(1, length(term)) AS at
));
CREATE INDEX terms_near ON terms USING gin (term_deletions(tenant, term))
    WHERE length(term) BETWEEN 4 AND 20 AND term !~ '[0-9~ǀǁǂǃ]';

-- migrate:down
DROP INDEX terms_near, documents_by_filter, documents_of_some;
DROP FUNCTION term_deletions, filter_words, filter_word;
ALTER TABLE documents DROP COLUMN collection, DROP COLUMN audience, DROP COLUMN valid_until;
