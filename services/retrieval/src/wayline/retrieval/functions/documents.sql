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

-- What describes a document once a version is announced: `same` says nothing anew, what was changed of it stays unless the
-- version names it, and while the version before can be found nobody finds it whom either leaves out, and it is
-- untrusted where either is.
CREATE OR REPLACE FUNCTION described_now(
    same boolean, findable boolean, changed text[], said text[], old_metadata jsonb, new_metadata jsonb,
    old_collection text, new_collection text, old_trust text, new_trust text,
    old_audience text[], new_audience text[], old_valid_until timestamptz, new_valid_until timestamptz
)
RETURNS TABLE (metadata jsonb, collection text, trust text, audience text[], valid_until timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT
        CASE WHEN same OR stays('metadata', changed, said) THEN old_metadata ELSE new_metadata END,
        CASE WHEN same OR stays('collection', changed, said) THEN old_collection ELSE new_collection END,
        CASE WHEN same OR stays('trust', changed, said) OR old_trust = 'untrusted' AND findable THEN old_trust ELSE new_trust END,
        CASE
            WHEN same OR stays('audience', changed, said) THEN old_audience
            WHEN findable THEN narrower(old_audience, new_audience)
            ELSE new_audience
        END,
        CASE
            WHEN same OR stays('valid_until', changed, said) THEN old_valid_until
            WHEN findable THEN least(old_valid_until, new_valid_until)
            ELSE new_valid_until
        END
$$;

-- How many passages of a document have their vectors while others wait for theirs, and why; no row: none waits.
CREATE OR REPLACE FUNCTION vectors_awaited(tenant text, document_id text, status text)
RETURNS TABLE (why text, chunks bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT pending.error, (
        SELECT count(*) FROM chunk_vectors AS held
        WHERE held.tenant = $1 AND held.document_id = $2 AND held.set_id = live.set_id
    )
    FROM vector_sets AS live
    JOIN pending_vectors AS pending ON pending.tenant = $1 AND pending.set_id = live.set_id AND pending.document_id = $2
    WHERE live.tenant = $1 AND live.state = 'live' AND $3 = 'ready'
$$;
