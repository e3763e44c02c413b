-- A pair of a document's metadata as a word that holds its tenant; without a value: that the key is there.
CREATE OR REPLACE FUNCTION filter_word(tenant text, key text, value jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN tenant || '~' || md5(key) || CASE
    WHEN value IS NULL THEN ''
    WHEN jsonb_typeof(value) = 'number' THEN '=' || md5(trim_scale((value #>> '{}')::numeric)::text)
    ELSE '=' || md5(value::text)
END;

-- All such words of a document. As full-text words, because row-level security lets no other index serve conditions on
-- lists; with their tenant, so that nobody's rows are read for another.
CREATE OR REPLACE FUNCTION filter_words(tenant text, collection text, metadata jsonb) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array_to_tsvector(ARRAY(
    SELECT tenant || '~'
    UNION SELECT filter_word(tenant, key, NULL) FROM jsonb_object_keys(metadata) AS key
    UNION SELECT filter_word(tenant, key, value) FROM jsonb_each(metadata)
    UNION SELECT filter_word(tenant, key, one)
        FROM jsonb_each(metadata), jsonb_array_elements(CASE jsonb_typeof(value) WHEN 'array' THEN value ELSE '[]' END) AS one
    UNION SELECT tenant || '~in~' || md5(collection) WHERE collection IS NOT NULL
));

CREATE OR REPLACE FUNCTION is_or_holds(value jsonb, one jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN value = one OR (jsonb_typeof(value) = 'array' AND value @> jsonb_build_array(one));

-- Whether one value does; NULL: there is none. A list is what any of its values is. What is of another kind than the bound
-- is neither above nor below it.
CREATE OR REPLACE FUNCTION fulfils_one(value jsonb, condition jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce((condition ->> 'exists')::boolean = (value IS NOT NULL), true)
    AND (NOT condition ? 'equals' OR coalesce(is_or_holds(value, condition -> 'equals'), false))
    AND (NOT condition ? 'in' OR EXISTS (
        SELECT FROM jsonb_array_elements(condition -> 'in') AS one WHERE is_or_holds(value, one)
    ))
    AND NOT EXISTS (
        SELECT FROM jsonb_each(condition) AS bound (name, least)
        WHERE name IN ('gt', 'gte', 'lt', 'lte') AND NOT coalesce(
            jsonb_typeof(value) = jsonb_typeof(least) AND CASE name
                WHEN 'gt' THEN value > least
                WHEN 'gte' THEN value >= least
                WHEN 'lt' THEN value < least
                ELSE value <= least
            END, false
        )
    );

-- Whether a document's metadata fulfils conditions by key: {"year": {"gte": 2020, "lt": 2024}, "tag": {"in": ["a", "b"]}}.
CREATE OR REPLACE FUNCTION fulfils(metadata jsonb, conditions jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN conditions IS NULL OR NOT EXISTS (
    SELECT FROM jsonb_each(conditions) AS asked (key, condition) WHERE NOT fulfils_one(metadata -> key, condition)
);

-- The words that all documents have that fulfil conditions and are of one of some collections, as `filter_words` writes
-- them. They hold nothing but a tenant and digests, whatever is asked.
CREATE OR REPLACE FUNCTION wanted_words(tenant text, conditions jsonb, collections text[]) RETURNS tsquery
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT string_agg('(' || wanted || ')', ' & ')::tsquery
    FROM (
        SELECT '''' || tenant || '~''' AS wanted
        UNION ALL
        SELECT CASE
            WHEN condition ? 'equals' THEN '''' || filter_word(tenant, key, condition -> 'equals') || ''''
            WHEN condition ? 'in' THEN coalesce((
                SELECT string_agg('''' || filter_word(tenant, key, one) || '''', ' | ')
                FROM jsonb_array_elements(condition -> 'in') AS one
            ), '''' || tenant || '~nothing''')
            ELSE '''' || filter_word(tenant, key, NULL) || ''''
        END
        FROM jsonb_each(coalesce(conditions, '{}')) AS asked (key, condition)
        WHERE coalesce((condition ->> 'exists')::boolean, true)
        UNION ALL
        SELECT coalesce(
            (SELECT string_agg('''' || tenant || '~in~' || md5(one) || '''', ' | ') FROM unnest(collections) AS one),
            '''' || tenant || '~nothing'''
        )
        WHERE collections IS NOT NULL
    ) AS every
);
