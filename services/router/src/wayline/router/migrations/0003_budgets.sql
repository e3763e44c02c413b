-- migrate:up

-- What a reservation is counted in, what its job may spend, and which budget it waits for.
ALTER TABLE reservations
    ADD COLUMN agent text NOT NULL DEFAULT '',
    ADD COLUMN user_id text,
    ADD COLUMN cap_usd numeric, -- the job's own budget
    ADD COLUMN cap_set boolean NOT NULL DEFAULT false, -- somebody chose it: it is not the built-in default
    ADD COLUMN unsettled_usd numeric NOT NULL DEFAULT 0, -- the most that calls nobody saw end can have cost beside it
    ADD COLUMN asked_seq integer NOT NULL DEFAULT 0, -- where in the job's log it last asked for money
    ADD COLUMN waits_for text, -- the budget that refused last
    ADD COLUMN waits_usd numeric, -- what the job would have to hold to go on
    ADD COLUMN waits_since timestamptz;
CREATE INDEX reservations_waiting ON reservations (waits_since) WHERE waits_for IS NOT NULL;
CREATE INDEX reservations_at ON reservations USING brin (reserved_at);

CREATE TABLE budgets (
    tenant text NOT NULL,
    name text NOT NULL,
    limit_usd numeric NOT NULL CHECK (limit_usd >= 0),
    period text NOT NULL CHECK (period IN ('job', 'hour', 'day', 'week', 'month', 'total')),
    timezone text NOT NULL,
    agent text, -- null: every agent
    user_id text, -- null: every user
    hard boolean NOT NULL,
    alerts numeric[] NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- The counters of a budget, one row a window: what is decided by is read from here, never summed over jobs.
CREATE TABLE budget_windows (
    tenant text NOT NULL,
    budget text NOT NULL,
    starts_at timestamptz NOT NULL,
    spent_usd numeric NOT NULL DEFAULT 0,
    reserved_usd numeric NOT NULL DEFAULT 0, -- held by jobs that have not ended
    unsettled_usd numeric NOT NULL DEFAULT 0, -- what may have been spent beside it: its price or its end is unknown
    unsettled_jobs integer NOT NULL DEFAULT 0, -- ended jobs whose cost is unknown
    PRIMARY KEY (tenant, budget, starts_at),
    FOREIGN KEY (tenant, budget) REFERENCES budgets ON DELETE CASCADE
);

-- In which window a job that has not ended holds how much: money belongs to the window in which it was reserved.
CREATE TABLE budget_holds (
    tenant text NOT NULL,
    job_id text NOT NULL,
    budget text NOT NULL,
    starts_at timestamptz NOT NULL,
    held_usd numeric NOT NULL,
    PRIMARY KEY (tenant, job_id, budget, starts_at),
    FOREIGN KEY (tenant, budget) REFERENCES budgets ON DELETE CASCADE
);

-- A threshold that was reached, once a window.
CREATE TABLE budget_alerts (
    tenant text NOT NULL,
    budget text NOT NULL,
    starts_at timestamptz NOT NULL,
    threshold numeric NOT NULL,
    at timestamptz NOT NULL,
    used_usd numeric NOT NULL,
    limit_usd numeric NOT NULL,
    told boolean NOT NULL DEFAULT false, -- a router has logged and counted it
    PRIMARY KEY (tenant, budget, starts_at, threshold),
    FOREIGN KEY (tenant, budget) REFERENCES budgets ON DELETE CASCADE
);
CREATE INDEX budget_alerts_untold ON budget_alerts (at) WHERE NOT told;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['budgets', 'budget_windows', 'budget_holds', 'budget_alerts'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY tenant ON %I USING (
                tenant = (SELECT current_setting(''wayline.tenant'', true))
                OR (SELECT current_setting(''wayline.tenant'', true)) = ''*'')',
            name
        );
    END LOOP;
END
$$;

-- When a local time comes: for the first time, where clocks are turned back over it; Postgres means the second.
CREATE FUNCTION first_instant(local timestamp, zone text) RETURNS timestamptz LANGUAGE sql STABLE
RETURN CASE
    WHEN (local AT TIME ZONE zone - interval '1 hour') AT TIME ZONE zone = local
    THEN local AT TIME ZONE zone - interval '1 hour'
    ELSE local AT TIME ZONE zone
END;

CREATE FUNCTION window_start(at timestamptz, period text, zone text) RETURNS timestamptz LANGUAGE sql STABLE
RETURN CASE period
    WHEN 'total' THEN '-infinity'::timestamptz
    WHEN 'job' THEN NULL -- each job is a window of its own
    WHEN 'hour' THEN date_trunc('hour', at, zone) -- tells a repeated hour from its twin
    ELSE first_instant(date_trunc(period, at AT TIME ZONE zone), zone)
END;

CREATE FUNCTION window_end(starts_at timestamptz, period text, zone text) RETURNS timestamptz LANGUAGE sql STABLE
RETURN CASE period
    WHEN 'total' THEN 'infinity'::timestamptz
    WHEN 'job' THEN NULL
    WHEN 'hour' THEN starts_at + interval '1 hour'
    -- Cut again: where a midnight was skipped, the window began an hour into its day.
    ELSE first_instant(date_trunc(period, starts_at AT TIME ZONE zone) + ('1 ' || period)::interval, zone)
END;

CREATE FUNCTION in_scope(scope_agent text, scope_user text, job_agent text, job_user text) RETURNS boolean
LANGUAGE sql IMMUTABLE
RETURN (scope_agent IS NULL OR scope_agent = job_agent) AND (scope_user IS NULL OR scope_user IS NOT DISTINCT FROM job_user);

-- Every decision about a tenant's money takes its locks in this order: the tenant (shared), its budgets by name, its
-- reservations by job. So two decisions never wait for each other in a circle, and the second reads what the first
-- wrote: in a function each statement after a lock sees what was committed before the lock was given.
CREATE FUNCTION lock_money(for_tenant text, jobs text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext('router.budgets'), hashtext(for_tenant));
    PERFORM FROM budgets WHERE tenant = for_tenant ORDER BY name FOR NO KEY UPDATE;
    PERFORM FROM reservations WHERE tenant = for_tenant AND job_id = ANY (jobs) ORDER BY job_id FOR NO KEY UPDATE;
END
$$;

-- Whoever adds, moves or removes a budget counts reservations, so no decision may be under way meanwhile.
CREATE FUNCTION lock_budgets(for_tenant text) RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtext('router.budgets'), hashtext(for_tenant))
$$;

CREATE FUNCTION raise_alerts(for_tenant text, moment timestamptz) RETURNS void LANGUAGE sql AS $$
    INSERT INTO budget_alerts (tenant, budget, starts_at, threshold, at, used_usd, limit_usd)
    SELECT for_tenant, budgets.name, now_in.starts_at, threshold, moment, used, budgets.limit_usd
    FROM budgets
    JOIN budget_windows AS now_in ON now_in.tenant = for_tenant AND now_in.budget = budgets.name
        AND now_in.starts_at = window_start(moment, period, timezone),
    LATERAL (SELECT spent_usd + reserved_usd + unsettled_usd AS used) AS sums,
    LATERAL unnest(alerts) AS threshold
    WHERE budgets.tenant = for_tenant AND period <> 'job' AND used > 0 AND used >= threshold * budgets.limit_usd
    ON CONFLICT DO NOTHING
$$;

-- Hold `totals[n]` for `jobs[n]`, one after another: each is granted whole or not at all, and counts for the next.
-- A hold is a maximum, so that asking again changes nothing. A total of null is a call whose price is unknown.
CREATE FUNCTION hold_money(
    for_tenant text, jobs text[], totals numeric[], caps numeric[], seqs integer[], moment timestamptz
)
RETURNS TABLE (nth bigint, granted boolean, held numeric, room numeric, refused_by text, resets_at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    ask record;
    job reservations;
    tight record;
    own numeric;
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
        need := greatest(ask.total - job.reserved_usd, 0);
        refused_by := CASE
            WHEN job.state <> 'reserved' THEN 'ended'
            WHEN ask.total IS NULL AND (ask.cap IS NOT NULL OR job.cap_set) THEN 'job'
            WHEN ask.total IS NULL THEN tight.name
            WHEN need = 0 THEN NULL
            WHEN ask.total > own THEN 'job'
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
        END IF;
        -- The log is the truth about a job's own budget, and whoever asks has read it.
        UPDATE reservations SET reserved_usd = reserved_usd + need, cap_usd = own, cap_set = cap_set OR ask.cap IS NOT NULL,
            asked_seq = greatest(asked_seq, ask.seq),
            waits_for = CASE WHEN refused_by <> 'job' THEN refused_by END,
            waits_usd = CASE WHEN refused_by <> 'job' THEN ask.total END,
            waits_since = CASE WHEN refused_by <> 'job' THEN moment END
        WHERE tenant = for_tenant AND job_id = ask.job_id AND state = 'reserved';
        held := job.reserved_usd + need;
        room := greatest(least(own - held, tight.free - need), 0);
        resets_at := CASE WHEN refused_by = tight.name AND isfinite(tight.ends_at) THEN tight.ends_at END;
        RETURN NEXT;
    END LOOP;
    PERFORM raise_alerts(for_tenant, moment);
END
$$;

-- What a job's cost makes of its holds: it fills them oldest first, and what is more than all of them goes to the last.
CREATE FUNCTION shares(for_tenant text, jobs text[])
RETURNS TABLE (job_id text, budget text, starts_at timestamptz, held_usd numeric, before numeric, newest boolean)
LANGUAGE sql STABLE AS $$
    SELECT job_id, budget, starts_at, held_usd,
        sum(held_usd) OVER (PARTITION BY job_id, budget ORDER BY starts_at) - held_usd,
        lead(starts_at) OVER (PARTITION BY job_id, budget ORDER BY starts_at) IS NULL
    FROM budget_holds WHERE tenant = for_tenant AND job_id = ANY (jobs)
$$;

-- Turn reservations into what the jobs cost, each once; returns those that this call has settled.
CREATE FUNCTION settle_money(for_tenant text, jobs text[], costs numeric[], unsure numeric[], moment timestamptz)
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    done text[];
BEGIN
    PERFORM lock_money(for_tenant, jobs);
    WITH cost AS (
        SELECT * FROM unnest(jobs, costs, unsure) AS cost (job_id, usd, unsure)
    ), changed AS (
        UPDATE reservations AS held SET settled_usd = cost.usd, unsettled_usd = cost.unsure, state = 'settled',
            settled_at = moment, waits_for = NULL, waits_usd = NULL, waits_since = NULL
        FROM cost WHERE held.tenant = for_tenant AND held.job_id = cost.job_id AND held.state = 'reserved'
        RETURNING held.job_id
    )
    SELECT coalesce(array_agg(job_id), '{}') INTO done FROM changed;
    RETURN QUERY SELECT unnest(done);
    IF done = '{}' OR NOT EXISTS (SELECT FROM budgets WHERE tenant = for_tenant AND period <> 'job') THEN
        RETURN;
    END IF;
    WITH held AS (
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
        JOIN reservations AS job ON job.tenant = for_tenant AND job.job_id = part.job_id
    ), unheld AS (
        -- It spent without holding: its price was unknown, or the budget is younger than its first call.
        SELECT budgets.name, window_start(job.reserved_at, period, timezone), 0, coalesce(job.settled_usd, 0),
            job.unsettled_usd, (job.settled_usd IS NULL)::int
        FROM reservations AS job
        JOIN budgets ON budgets.tenant = for_tenant AND period <> 'job'
            AND in_scope(budgets.agent, budgets.user_id, job.agent, job.user_id)
        WHERE job.tenant = for_tenant AND job.job_id = ANY (done)
            AND (job.settled_usd IS DISTINCT FROM 0 OR job.unsettled_usd > 0)
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
CREATE FUNCTION release_money(for_tenant text, job text, spent numeric, seq integer) RETURNS numeric
LANGUAGE plpgsql AS $$
DECLARE
    held numeric;
BEGIN
    PERFORM lock_money(for_tenant, ARRAY[job]);
    SELECT reserved_usd INTO held FROM reservations
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
    RETURN held - spent;
END
$$;

-- Count a budget's present window anew, and what jobs that have not ended hold in it, from the reservations.
CREATE FUNCTION recount_budget(for_tenant text, counted text, moment timestamptz) RETURNS void LANGUAGE sql AS $$
    DELETE FROM budget_alerts WHERE tenant = for_tenant AND budget = counted;
    DELETE FROM budget_windows WHERE tenant = for_tenant AND budget = counted;
    DELETE FROM budget_holds WHERE tenant = for_tenant AND budget = counted;
    INSERT INTO budget_holds (tenant, job_id, budget, starts_at, held_usd)
    SELECT for_tenant, job_id, counted, window_start(reserved_at, period, timezone), reserved_usd
    FROM reservations AS job
    JOIN budgets ON budgets.tenant = for_tenant AND budgets.name = counted AND period <> 'job'
    WHERE job.tenant = for_tenant AND state = 'reserved' AND reserved_usd > 0
        AND in_scope(budgets.agent, budgets.user_id, job.agent, job.user_id);
    INSERT INTO budget_windows (
        tenant, budget, starts_at, spent_usd, reserved_usd, unsettled_usd, unsettled_jobs
    )
    SELECT for_tenant, counted, window_start(reserved_at, period, timezone),
        coalesce(sum(settled_usd), 0),
        coalesce(sum(reserved_usd) FILTER (WHERE state = 'reserved'), 0),
        coalesce(sum(unsettled_usd + CASE WHEN settled_usd IS NULL THEN reserved_usd ELSE 0 END)
            FILTER (WHERE state = 'settled'), 0),
        count(*) FILTER (WHERE state = 'settled' AND settled_usd IS NULL)
    FROM reservations AS job
    JOIN budgets ON budgets.tenant = for_tenant AND budgets.name = counted AND period <> 'job'
    WHERE job.tenant = for_tenant AND in_scope(budgets.agent, budgets.user_id, job.agent, job.user_id)
        AND (state = 'reserved' OR reserved_at >= window_start(moment, period, timezone))
    GROUP BY 3
$$;

-- Save a budget. It counts what was spent before it was there; a new limit alone leaves the counters as they are.
CREATE FUNCTION put_budget(
    for_tenant text, named text, new_limit numeric, new_period text, zone text, of_agent text, of_user text,
    is_hard boolean, thresholds numeric[], moment timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    old budgets;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_timezone_names WHERE name = zone) THEN
        RAISE invalid_parameter_value USING MESSAGE = format('no time zone %L', zone);
    END IF;
    PERFORM lock_budgets(for_tenant);
    SELECT * INTO old FROM budgets WHERE tenant = for_tenant AND name = named;
    INSERT INTO budgets (tenant, name, limit_usd, period, timezone, agent, user_id, hard, alerts)
    VALUES (for_tenant, named, new_limit, new_period, zone, of_agent, of_user, is_hard, thresholds)
    ON CONFLICT (tenant, name) DO UPDATE SET
        limit_usd = excluded.limit_usd, period = excluded.period, timezone = excluded.timezone,
        agent = excluded.agent, user_id = excluded.user_id, hard = excluded.hard, alerts = excluded.alerts;
    IF (old.period, old.timezone, old.agent, old.user_id) IS DISTINCT FROM (new_period, zone, of_agent, of_user) THEN
        PERFORM recount_budget(for_tenant, named, moment);
    END IF;
    -- What is below its threshold again may be told again.
    DELETE FROM budget_alerts AS alert USING budget_windows AS counter
    WHERE alert.tenant = for_tenant AND alert.budget = named AND counter.tenant = for_tenant
        AND counter.budget = named AND counter.starts_at = alert.starts_at
        AND (alert.threshold <> ALL (thresholds)
            OR spent_usd + reserved_usd + unsettled_usd < alert.threshold * new_limit);
    PERFORM raise_alerts(for_tenant, moment);
END
$$;

-- migrate:down
DROP FUNCTION put_budget, recount_budget, release_money, settle_money, shares, hold_money, raise_alerts, lock_budgets,
    lock_money, in_scope, window_end, window_start, first_instant;
DROP TABLE budget_alerts, budget_holds, budget_windows, budgets;
DROP INDEX reservations_at, reservations_waiting;
ALTER TABLE reservations
    DROP COLUMN agent, DROP COLUMN user_id, DROP COLUMN cap_usd, DROP COLUMN cap_set, DROP COLUMN unsettled_usd,
    DROP COLUMN asked_seq, DROP COLUMN waits_for, DROP COLUMN waits_usd, DROP COLUMN waits_since;
