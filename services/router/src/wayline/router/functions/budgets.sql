-- Adding, moving or removing a budget counts reservations, so no decision may be under way meanwhile.
CREATE OR REPLACE FUNCTION lock_budgets(for_tenant text) RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtext('router.budgets'), hashtext(for_tenant))
$$;

CREATE OR REPLACE FUNCTION raise_alerts(for_tenant text, moment timestamptz) RETURNS void LANGUAGE sql AS $$
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

-- Count a budget's present window anew, and what jobs that have not ended hold in it, from the reservations.
CREATE OR REPLACE FUNCTION recount_budget(for_tenant text, counted text, moment timestamptz) RETURNS void
LANGUAGE sql AS $$
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
CREATE OR REPLACE FUNCTION put_budget(
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
