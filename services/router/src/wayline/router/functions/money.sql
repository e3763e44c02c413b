-- Every decision about a tenant's money takes its locks in this order: the tenant (shared), its budgets by name, its
-- reservations by job, those of the jobs above included. So two decisions never wait for each other in a circle, and the second reads what the first
-- wrote: in a function each statement after a lock sees what was committed before the lock was given.
CREATE OR REPLACE FUNCTION lock_money(for_tenant text, jobs text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext('router.budgets'), hashtext(for_tenant));
    PERFORM FROM budgets WHERE tenant = for_tenant ORDER BY name FOR NO KEY UPDATE;
    PERFORM FROM reservations WHERE tenant = for_tenant AND job_id = ANY (
        jobs || ARRAY(
            SELECT unnest(ancestors) FROM reservations
            WHERE tenant = for_tenant AND job_id = ANY (jobs) AND ancestors <> '{}'
        )
    ) ORDER BY job_id FOR NO KEY UPDATE;
END
$$;

-- Count in the jobs above one what that one holds or gives back.
CREATE OR REPLACE FUNCTION count_below(for_tenant text, above text[], usd numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF above <> '{}' AND usd <> 0 THEN
        UPDATE reservations SET children_usd = children_usd + usd WHERE tenant = for_tenant AND job_id = ANY (above);
    END IF;
END
$$;

-- Hold `totals[n]` for `jobs[n]`, one after another: each is granted whole or not at all, and counts for the next.
-- A hold is a maximum, so that asking again changes nothing. A total of null is a call whose price is unknown.
-- What a job holds counts in the budget of each job above it, and what those below it hold counts in its own.
CREATE OR REPLACE FUNCTION hold_money(
    for_tenant text, jobs text[], totals numeric[], caps numeric[], seqs integer[], moment timestamptz
)
RETURNS TABLE (nth bigint, granted boolean, held numeric, room numeric, refused_by text, resets_at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    ask record;
    job reservations;
    tight record;
    own numeric;
    above numeric;
    need numeric;
BEGIN
    PERFORM lock_money(for_tenant, jobs);
    INSERT INTO budget_windows (tenant, budget, starts_at)
    SELECT tenant, name, window_start(moment, period, timezone) FROM budgets
    WHERE tenant = for_tenant AND period <> 'job'
    ON CONFLICT DO NOTHING;
    FOR ask IN SELECT * FROM unnest(jobs, totals, caps, seqs) WITH ORDINALITY AS a (job_id, total, cap, seq, place)
    ORDER BY place LOOP
        nth := ask.place;
        SELECT * INTO job FROM reservations WHERE tenant = for_tenant AND job_id = ask.job_id;
        CONTINUE WHEN NOT FOUND;
        SELECT budgets.name, limit_usd - spent_usd - reserved_usd - unsettled_usd AS free,
            window_end(starts_at, period, timezone) AS ends_at
        INTO tight
        FROM budgets
        JOIN budget_windows AS now_in ON now_in.tenant = for_tenant AND now_in.budget = budgets.name
            AND now_in.starts_at = window_start(moment, period, timezone)
        WHERE budgets.tenant = for_tenant AND period <> 'job' AND hard
            AND in_scope(budgets.agent, budgets.user_id, job.agent, job.user_id)
        ORDER BY free, budgets.name LIMIT 1;
        own := coalesce(ask.cap, job.cap_usd);
        -- Null: no job is above. One that has ended leaves nothing.
        SELECT min(CASE WHEN state = 'reserved' THEN cap_usd - reserved_usd - children_usd ELSE 0 END) INTO above
        FROM reservations WHERE tenant = for_tenant AND job_id = ANY (job.ancestors);
        need := greatest(ask.total - job.reserved_usd, 0);
        refused_by := CASE
            WHEN job.state <> 'reserved' THEN 'ended'
            WHEN ask.total IS NULL AND (ask.cap IS NOT NULL OR job.cap_set) THEN 'job'
            WHEN ask.total IS NULL THEN tight.name
            WHEN need = 0 THEN NULL
            WHEN ask.total > own - job.children_usd OR need > above THEN 'job'
            WHEN need > tight.free THEN tight.name
        END;
        granted := refused_by IS NULL;
        need := CASE WHEN granted THEN coalesce(need, 0) ELSE 0 END;
        IF need > 0 THEN
            INSERT INTO budget_holds AS old (tenant, job_id, budget, starts_at, held_usd)
            SELECT for_tenant, ask.job_id, budgets.name, window_start(moment, period, timezone), need FROM budgets
            WHERE budgets.tenant = for_tenant AND period <> 'job'
                AND in_scope(budgets.agent, budgets.user_id, job.agent, job.user_id)
            ON CONFLICT (tenant, job_id, budget, starts_at) DO UPDATE SET held_usd = old.held_usd + excluded.held_usd;
            UPDATE budget_windows AS now_in SET reserved_usd = now_in.reserved_usd + need
            FROM budgets
            WHERE budgets.tenant = for_tenant AND period <> 'job'
                AND in_scope(budgets.agent, budgets.user_id, job.agent, job.user_id)
                AND now_in.tenant = for_tenant AND now_in.budget = budgets.name
                AND now_in.starts_at = window_start(moment, period, timezone);
            PERFORM count_below(for_tenant, job.ancestors, need);
        END IF;
        -- The log is the truth about a job's own budget, and its caller has read it.
        UPDATE reservations SET reserved_usd = reserved_usd + need, cap_usd = own, cap_set = cap_set OR ask.cap IS NOT NULL,
            asked_seq = greatest(asked_seq, ask.seq),
            waits_for = CASE WHEN refused_by <> 'job' THEN refused_by END,
            waits_usd = CASE WHEN refused_by <> 'job' THEN ask.total END,
            waits_since = CASE WHEN refused_by <> 'job' THEN moment END
        WHERE tenant = for_tenant AND job_id = ask.job_id AND state = 'reserved';
        held := job.reserved_usd + need;
        room := greatest(least(own - job.children_usd - held, tight.free - need, above - need), 0);
        resets_at := CASE WHEN refused_by = tight.name AND isfinite(tight.ends_at) THEN tight.ends_at END;
        RETURN NEXT;
    END LOOP;
    PERFORM raise_alerts(for_tenant, moment);
END
$$;

-- The same, for jobs of which not all wait where they are refused: one that goes on without is not to be woken.
CREATE OR REPLACE FUNCTION hold_money(
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

-- What a job's cost makes of its holds: it fills them oldest first, and what is more than all of them goes to the last.
CREATE OR REPLACE FUNCTION shares(for_tenant text, jobs text[])
RETURNS TABLE (job_id text, budget text, starts_at timestamptz, held_usd numeric, before numeric, newest boolean)
LANGUAGE sql STABLE AS $$
    SELECT job_id, budget, starts_at, held_usd,
        sum(held_usd) OVER (PARTITION BY job_id, budget ORDER BY starts_at) - held_usd,
        lead(starts_at) OVER (PARTITION BY job_id, budget ORDER BY starts_at) IS NULL
    FROM budget_holds WHERE tenant = for_tenant AND job_id = ANY (jobs)
$$;

-- Turn reservations into what the jobs cost, each once; returns those that this call has settled.
-- Each is looked up by its whole key: a session keeps the plan that it made while the table was empty, and a join that
-- was planned then reads every reservation of the tenant.
CREATE OR REPLACE FUNCTION settle_money(
    for_tenant text, jobs text[], costs numeric[], unsure numeric[], moment timestamptz
)
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    done text[] := '{}';
    ended_job reservations;
BEGIN
    PERFORM lock_money(for_tenant, jobs);
    FOR place IN 1 .. cardinality(jobs) LOOP
        UPDATE reservations SET settled_usd = costs[place], unsettled_usd = unsure[place], state = 'settled',
            settled_at = moment, waits_for = NULL, waits_usd = NULL, waits_since = NULL,
            is_settled_charge = starts_with(job_id, 'tool/')
        WHERE tenant = for_tenant AND job_id = jobs[place] AND state = 'reserved'
        RETURNING * INTO ended_job;
        IF FOUND THEN
            done := done || jobs[place];
            PERFORM count_below(
                for_tenant, ended_job.ancestors,
                coalesce(ended_job.settled_usd, ended_job.reserved_usd) + ended_job.unsettled_usd
                    - ended_job.reserved_usd
            );
        END IF;
    END LOOP;
    RETURN QUERY SELECT unnest(done);
    IF done = '{}' OR NOT EXISTS (SELECT FROM budgets WHERE tenant = for_tenant AND period <> 'job') THEN
        RETURN;
    END IF;
    WITH ended AS MATERIALIZED (
        SELECT job.* FROM unnest(done) AS one (id)
        CROSS JOIN LATERAL (SELECT * FROM reservations WHERE tenant = for_tenant AND job_id = one.id OFFSET 0) AS job
    ), held AS (
        SELECT part.budget, part.starts_at, part.held_usd,
            CASE
                WHEN job.settled_usd IS NULL THEN 0
                WHEN newest THEN greatest(job.settled_usd - part.before, 0)
                ELSE greatest(least(job.settled_usd - part.before, part.held_usd), 0)
            END AS spent,
            CASE WHEN job.settled_usd IS NULL THEN part.held_usd ELSE 0 END
                + CASE WHEN newest THEN job.unsettled_usd ELSE 0 END AS unsettled,
            (newest AND job.settled_usd IS NULL)::int AS unknown
        FROM shares(for_tenant, done) AS part
        JOIN ended AS job ON job.job_id = part.job_id
    ), unheld AS (
        -- It spent without holding: its price was unknown, or the budget is younger than its first call.
        SELECT budgets.name, window_start(job.reserved_at, period, timezone), 0, coalesce(job.settled_usd, 0),
            job.unsettled_usd, (job.settled_usd IS NULL)::int
        FROM ended AS job
        JOIN budgets ON budgets.tenant = for_tenant AND period <> 'job'
            AND in_scope(budgets.agent, budgets.user_id, job.agent, job.user_id)
        WHERE (job.settled_usd IS DISTINCT FROM 0 OR job.unsettled_usd > 0)
            AND NOT EXISTS (
                SELECT FROM budget_holds AS part
                WHERE part.tenant = for_tenant AND part.job_id = job.job_id AND part.budget = budgets.name
            )
    )
    INSERT INTO budget_windows AS old (
        tenant, budget, starts_at, reserved_usd, spent_usd, unsettled_usd, unsettled_jobs
    )
    SELECT for_tenant, budget, starts_at, -sum(held_usd), sum(spent), sum(unsettled), sum(unknown)
    FROM (SELECT * FROM held UNION ALL SELECT * FROM unheld) AS parts
    GROUP BY budget, starts_at
    ON CONFLICT (tenant, budget, starts_at) DO UPDATE SET
        reserved_usd = old.reserved_usd + excluded.reserved_usd, spent_usd = old.spent_usd + excluded.spent_usd,
        unsettled_usd = old.unsettled_usd + excluded.unsettled_usd,
        unsettled_jobs = old.unsettled_jobs + excluded.unsettled_jobs;
    DELETE FROM budget_holds WHERE tenant = for_tenant AND job_id = ANY (done);
    PERFORM raise_alerts(for_tenant, moment);
END
$$;

-- Give back what a job holds beyond what it has spent; returns how much that was.
-- A release that was slow must not take away what the job's next holder was granted since.
CREATE OR REPLACE FUNCTION release_money(for_tenant text, job text, spent numeric, seq integer) RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
    held numeric;
    above text[];
BEGIN
    PERFORM lock_money(for_tenant, ARRAY[job]);
    SELECT reserved_usd, ancestors INTO held, above FROM reservations
    WHERE tenant = for_tenant AND job_id = job AND state = 'reserved' AND reserved_usd > spent AND asked_seq <= seq;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    WITH kept AS (
        SELECT budget, starts_at, held_usd, greatest(least(held_usd, spent - before), 0) AS keeps
        FROM shares(for_tenant, ARRAY[job])
    ), counted AS (
        UPDATE budget_windows AS counter SET reserved_usd = counter.reserved_usd - kept.held_usd + kept.keeps
        FROM kept
        WHERE counter.tenant = for_tenant AND counter.budget = kept.budget AND counter.starts_at = kept.starts_at
    )
    UPDATE budget_holds AS hold SET held_usd = kept.keeps
    FROM kept
    WHERE hold.tenant = for_tenant AND hold.job_id = job AND hold.budget = kept.budget
        AND hold.starts_at = kept.starts_at;
    DELETE FROM budget_holds WHERE tenant = for_tenant AND job_id = job AND held_usd = 0;
    UPDATE reservations SET reserved_usd = spent WHERE tenant = for_tenant AND job_id = job;
    PERFORM count_below(for_tenant, above, spent - held);
    RETURN held - spent;
END
$$;
