-- A word of the index, and what is left of it without one of its letters: misspelt words share one of these.
CREATE OR REPLACE FUNCTION term_deletions(tenant text, term text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array_to_tsvector(ARRAY(
    SELECT tenant || '~' || term
    UNION SELECT tenant || '~' || overlay(term PLACING '' FROM at FOR 1) FROM generate_series(1, length(term)) AS at
));
