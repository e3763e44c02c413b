-- Give each job its turn in its session, in the order in which they stand here; a job that has one keeps it. One that
-- would rather be refused than wait gets none where an earlier turn has not ended, nor does any beyond `most` of them.
-- Sessions are locked in one order, so that two statements never wait for each other; what is read after the lock was
-- committed before it was given.
CREATE OR REPLACE FUNCTION take_turns(
    for_tenant text, jobs text[], in_sessions text[], with_agents text[], for_users text[], when_busy text[],
    most integer, moment timestamptz
)
RETURNS TABLE (job_id text, turn integer, turn_after text, open_job text) LANGUAGE plpgsql STRICT AS $$
DECLARE
    ask record;
    first_open record;
BEGIN
    INSERT INTO sessions (tenant, session_id, agent, created_at, updated_at)
    SELECT DISTINCT ON (session_id) for_tenant, session_id, agent, moment, moment
    FROM unnest(in_sessions, with_agents) AS asked (session_id, agent) ORDER BY session_id
    ON CONFLICT (tenant, session_id) DO NOTHING;
    PERFORM FROM sessions AS one WHERE one.tenant = for_tenant AND one.session_id = ANY (in_sessions)
    ORDER BY one.session_id FOR NO KEY UPDATE;
    FOR ask IN
        SELECT * FROM unnest(jobs, in_sessions, with_agents, for_users, when_busy)
            WITH ORDINALITY AS a (job, session_id, agent, user_id, busy, place) ORDER BY place
    LOOP
        job_id := ask.job;
        SELECT one.job_id, one.number INTO first_open FROM session_turns AS one
        WHERE one.tenant = for_tenant AND one.session_id = ask.session_id AND one.ended_at IS NULL
        ORDER BY one.number LIMIT 1;
        SELECT one.number, one.after INTO turn, turn_after FROM session_turns AS one
        WHERE one.tenant = for_tenant AND one.job_id = ask.job;
        open_job := first_open.job_id;
        IF turn IS NULL AND NOT (
            open_job IS NOT NULL AND (
                ask.busy = 'refuse'
                OR (SELECT turns FROM sessions AS one WHERE one.tenant = for_tenant AND one.session_id = ask.session_id)
                    - first_open.number + 1 >= most
            )
        ) THEN
            INSERT INTO session_turns (tenant, job_id, session_id, number, after, taken_at, steers)
            SELECT for_tenant, ask.job, ask.session_id, one.turns + 1, one.tail_job, moment,
                open_job IS NOT NULL AND ask.busy = 'steer'
            FROM sessions AS one
            WHERE one.tenant = for_tenant AND one.session_id = ask.session_id
            RETURNING number, after INTO turn, turn_after;
            UPDATE sessions AS one SET turns = turn, tail_job = ask.job, agent = ask.agent, user_id = ask.user_id,
                updated_at = moment
            WHERE one.tenant = for_tenant AND one.session_id = ask.session_id;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

-- Forget a session that is idle: its row and its order. Its jobs keep that they have had a turn. Returns whether there
-- was one, and else the job that has not ended.
CREATE OR REPLACE FUNCTION forget_session(for_tenant text, named text)
RETURNS TABLE (deleted boolean, open_job text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM sessions AS one WHERE one.tenant = for_tenant AND one.session_id = named FOR UPDATE;
    deleted := FOUND;
    SELECT one.job_id INTO open_job FROM session_turns AS one
    WHERE one.tenant = for_tenant AND one.session_id = named AND one.ended_at IS NULL ORDER BY one.number LIMIT 1;
    IF open_job IS NOT NULL THEN
        deleted := false;
    ELSIF deleted THEN
        UPDATE session_turns AS one SET session_id = NULL WHERE one.tenant = for_tenant AND one.session_id = named;
        DELETE FROM session_caches AS one WHERE one.tenant = for_tenant AND one.session_id = named;
        DELETE FROM sessions AS one WHERE one.tenant = for_tenant AND one.session_id = named;
    END IF;
    RETURN NEXT;
END
$$;
