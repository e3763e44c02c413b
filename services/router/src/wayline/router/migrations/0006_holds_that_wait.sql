-- migrate:up

-- The same, for jobs of which not all wait where they are refused: one that goes on without is not to be woken.
CREATE FUNCTION hold_money(
    for_tenant text, jobs text[], totals numeric[], caps numeric[], seqs integer[], waits boolean[], moment timestamptz
)
RETURNS TABLE (nth bigint, granted boolean, held numeric, room numeric, refused_by text, resets_at timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM hold_money(for_tenant, jobs, totals, caps, seqs, moment);
    FOR place IN 1 .. cardinality(jobs) LOOP
        IF NOT waits[place] THEN
            UPDATE reservations SET waits_for = NULL, waits_usd = NULL, waits_since = NULL
            WHERE tenant = for_tenant AND job_id = jobs[place];
        END IF;
    END LOOP;
END
$$;

-- migrate:down

DROP FUNCTION hold_money(text, text[], numeric[], numeric[], integer[], boolean[], timestamptz);
