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
