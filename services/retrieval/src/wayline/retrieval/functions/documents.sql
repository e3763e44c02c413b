-- The names that are in both audiences; null is everybody.
CREATE OR REPLACE FUNCTION narrower(one text[], other text[]) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN one IS NULL THEN other
    WHEN other IS NULL THEN one
    ELSE ARRAY(SELECT unnest(one) INTERSECT SELECT unnest(other))
END;

-- Whether what was changed of a document stays when a version comes that says these things of it.
CREATE OR REPLACE FUNCTION stays(field text, changed text[], said text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN field = ANY (changed) AND NOT field = ANY (said);

-- Whether something of a document can be found: of its version before, while a newer one is queued or indexed.
CREATE OR REPLACE FUNCTION has_content(tenant text, document_id text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT EXISTS (SELECT FROM originals WHERE originals.tenant = $1 AND originals.document_id = $2) $$;
