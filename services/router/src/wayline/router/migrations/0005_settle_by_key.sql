-- migrate:up

-- Turn reservations into what the jobs cost, each once; returns those that this call has settled.
-- Each is looked up by its whole key: a session keeps the plan that it made while the table was empty, and a join that
-- was planned then reads every reservation of the tenant.
CREATE OR REPLACE FUNCTION settle_money(
    for_tenant text, jobs text[], costs numeric[], unsure numeric[], moment timestamptz
)
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    done text[] := '{}';
BEGIN
    PERFORM lock_money(for_tenant, jobs);
    FOR place IN 1 .. cardinality(jobs) LOOP
        UPDATE reservations SET settled_usd = costs[place], unsettled_usd = unsure[place], state = 'settled',
            settled_at = moment, waits_for = NULL, waits_usd = NULL, waits_since = NULL
        WHERE tenant = for_tenant AND job_id = jobs[place] AND state = 'reserved';
        IF FOUND THEN
            done := done || jobs[place];
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

-- migrate:down
CREATE OR REPLACE FUNCTION settle_money(
    for_tenant text, jobs text[], costs numeric[], unsure numeric[], moment timestamptz
)
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
