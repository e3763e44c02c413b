"""The money page of Grafana: who spends on what, what prompt caches do, and what is left of budgets."""

from __future__ import annotations

from .page import Dashboard, Row
from .panels import Column, Metric, Panel, Sql
from .questions import (
    AGENT,
    CENTS_OF_CENTS,
    DOLLARS,
    MODEL,
    TENANT,
    THESE,
    TO_TRACE,
    TRACE_ID,
    newest,
    quantiles,
    spent,
    spent_by_day,
)

SHOWN_MAX = 50
USED, LIMIT = 'wayline_budget_usd{figure!="limit"}', 'wayline_budget_usd{figure="limit"}'


def dollars(title: str, description: str, ask: Sql | Metric) -> Panel:
    """Return a panel of dollars of several series, side by side."""
    return Panel(title, description, [ask], unit=DOLLARS, kind="bargauge", width=8, decimals=CENTS_OF_CENTS)


def figure(title: str, description: str, gauge: str, *, unit: str = DOLLARS) -> Panel:
    """Return a panel of one number of the whole ledger, whatever the window (400 days)."""
    ask = Metric(f"sum({newest(gauge, 'model', 'agent')})", title.lower())
    decimals = CENTS_OF_CENTS if unit == DOLLARS else None
    return Panel(title, description, [ask], unit=unit, kind="stat", width=4, height=5, decimals=decimals)


LEDGER = Row(
    "The whole ledger",
    [
        figure("Spent", "Dollars in the ledger (400 days).", "wayline_ledger_cost_usd"),
        figure("Saved by caches", "What cached prompts cost less than fresh ones.", "wayline_ledger_cache_saved_usd"),
        figure(
            "Lost on caches", "What was written into prompt caches and never read.", "wayline_ledger_cache_lost_usd"
        ),
        Panel(
            "Cache hits",
            "The share of all input tokens that came from a prompt cache.",
            [
                Metric(
                    f"sum({newest('wayline_ledger_cache_read_tokens', 'model', 'agent')})"
                    f" / (sum({newest('wayline_ledger_input_tokens', 'model', 'agent')}) > 0)",
                    "share",
                )
            ],
            unit="percentunit",
            kind="stat",
            width=4,
            height=5,
            decimals=1,
        ),
        figure(
            "Unsettled calls",
            "Calls whose usage never arrived, killed, cut or not counted: in no sum, but between the bounds below.",
            "wayline_ledger_unsettled_calls",
            unit="short",
        ),
        figure(
            "Unpriced calls",
            "Calls that no sum of dollars contains, because their price is unknown.",
            "wayline_ledger_unpriced_calls",
            unit="short",
        ),
    ],
)

SPENDING = Row(
    "Who spends on what",
    [
        dollars(
            "Dollars by model", "In this window; a tool that costs money stands alone.", Sql(spent(MODEL, by="model"))
        ),
        dollars("Dollars by agent", "In this window, by agent.", Sql(spent("agent", by="agent"))),
        dollars(
            "Dollars by user",
            "In this window; `-` is a job without one.",
            Sql(spent("coalesce(user_id, '-')", by="who")),
        ),
        dollars(
            "Dollars by tool", "In this window; `-` is a call of a model.", Sql(spent("coalesce(tool, '-')", by="tool"))
        ),
        dollars(
            "Dollars by kind",
            "Calls of the conversation's model, of tools, and auxiliary ones.",
            Sql(spent("kind", by="kind")),
        ),
        dollars("Dollars by tenant", "In this window, by tenant.", Sql(spent("tenant", by="who"))),
        Panel(
            "Dollars by day and model",
            "By day (UTC). The window's first and last day may be cut.",
            [spent_by_day(MODEL)],
            unit=DOLLARS,
            width=12,
            decimals=CENTS_OF_CENTS,
            bars=True,
        ),
        Panel(
            "Dollars by day and agent",
            "By day (UTC). The window's first and last day may be cut.",
            [spent_by_day("agent")],
            unit=DOLLARS,
            width=12,
            decimals=CENTS_OF_CENTS,
            bars=True,
        ),
    ],
)

CACHES = Row(
    "Prompt caches and what is not settled",
    [
        Panel(
            "Cache by model",
            "Input tokens, the share that was cached, and what that saved or lost in this window.",
            [
                Sql(f"""SELECT model, count(*) AS calls, sum(input_tokens)::bigint AS input,
                        (sum(cache_read_tokens) / nullif(sum(input_tokens), 0))::float8 AS cached,
                        coalesce(sum(saved_usd) FILTER (WHERE saved_usd > 0), 0)::float8 AS saved,
                        coalesce(-sum(saved_usd) FILTER (WHERE saved_usd < 0), 0)::float8 AS lost
                    FROM tracing.ledger WHERE NOT open AND kind = 'model' AND $__timeFilter(at) AND {THESE}
                    GROUP BY model ORDER BY input DESC""")
            ],
            unit="short",
            kind="table",
            width=12,
            columns=[Column("cached", unit="percentunit"), Column("saved", unit=DOLLARS), Column("lost", unit=DOLLARS)],
        ),
        Panel(
            "Unsettled by model",
            "Calls whose usage never arrived, between what they can have cost; `unbounded` ones have no upper bound.",
            [
                Sql(f"""SELECT coalesce(model, '-') AS model, count(*) FILTER (WHERE NOT settled) AS unsettled,
                        coalesce(sum(lower_usd) FILTER (WHERE NOT settled), 0)::float8 AS least,
                        coalesce(sum(upper_usd) FILTER (WHERE NOT settled), 0)::float8 AS most,
                        count(*) FILTER (WHERE NOT settled AND upper_usd IS NULL) AS unbounded
                    FROM tracing.ledger WHERE NOT open AND $__timeFilter(at) AND {THESE}
                    GROUP BY 1 ORDER BY unsettled DESC""")
            ],
            unit="short",
            kind="table",
            width=12,
            columns=[Column("least", unit=DOLLARS), Column("most", unit=DOLLARS)],
        ),
    ],
)

BUDGETS = Row(
    "Budgets",
    [
        Panel(
            "Budgets used",
            "What is spent, held by running jobs or unsettled, as a share of the limit, in the present window.",
            [
                Metric(
                    f"sum by (tenant, budget) ({newest(USED, 'tenant', 'budget', 'figure')})"
                    f" / on (tenant, budget) {newest(LIMIT, 'tenant', 'budget')}",
                    "{{tenant}} {{budget}}",
                    instant=True,
                )
            ],
            unit="percentunit",
            kind="bargauge",
            width=12,
            alarm_above=0.8,
        ),
        Panel(
            "Budgets over time",
            "Dollars that are spent, held and unsettled, and the limit; they begin anew with each window.",
            [Metric(newest("wayline_budget_usd", "tenant", "budget", "figure"), "{{tenant}} {{budget}} {{figure}}")],
            unit=DOLLARS,
            width=12,
            decimals=CENTS_OF_CENTS,
        ),
    ],
)

JOBS = Row(
    "Jobs",
    [
        Panel(
            "Dearest jobs",
            f"The {SHOWN_MAX} jobs on which most was spent in this window, as far as prices are known, what they were "
            "expected to cost, and the definition tokens that deferred tools spared their prompts.",
            [
                # From the ledger: a job has no cost of its own once the price of one of its calls is unknown.
                Sql(f"""WITH spent AS (
                        SELECT tenant, job_id, sum(cost_usd) AS usd,
                            count(*) FILTER (WHERE settled AND cost_usd IS NULL) AS unknown
                        FROM tracing.ledger WHERE NOT open AND $__timeFilter(at) AND {THESE}
                        GROUP BY 1, 2 ORDER BY usd DESC NULLS LAST LIMIT {SHOWN_MAX}
                    )
                    SELECT tenant, job_id AS job, agent, model, usd::float8 AS cost,
                        unknown AS "calls of unknown price", estimated_cost_usd::float8 AS expected, steps,
                        coalesce((costs ->> 'tool_tokens_saved')::bigint, 0) AS "tool tokens saved",
                        trace_id AS trace
                    FROM spent JOIN tracing.jobs USING (tenant, job_id)
                    ORDER BY usd DESC NULLS LAST""")
            ],
            unit="short",
            kind="table",
            width=24,
            columns=[TO_TRACE, TRACE_ID, Column("cost", unit=DOLLARS), Column("expected", unit=DOLLARS)],
        ),
    ],
)

PREDICTED = Row(
    "Predicted and actual",
    [
        Panel(
            "Actual to predicted by tier",
            "Ended jobs whose cost was predicted and is known: 1 in `median` is exactly what was predicted.",
            [
                Sql(f"""SELECT tier, count(*) AS jobs, sum(estimated_cost_usd)::float8 AS predicted,
                        sum(cost_usd)::float8 AS actual,
                        percentile_cont(0.5) WITHIN GROUP (ORDER BY cost_usd / estimated_cost_usd)::float8 AS median
                    FROM tracing.jobs
                    WHERE ended_at IS NOT NULL AND estimated_cost_usd > 0 AND cost_usd IS NOT NULL AND steps > 0
                        AND $__timeFilter(created_at) AND {THESE}
                    GROUP BY tier ORDER BY jobs DESC""")
            ],
            unit="short",
            kind="table",
            width=12,
            columns=[Column("predicted", unit=DOLLARS), Column("actual", unit=DOLLARS)],
        ),
        Panel(
            "Actual to predicted over time",
            "What ended jobs cost, of what their route predicted: 1 is exactly that.",
            quantiles("wayline_job_cost_to_predicted_ratio", "tier"),
            unit="short",
            width=12,
        ),
    ],
)

COST = Dashboard(
    uid="wayline-cost",
    title="Wayline cost",
    description="Who spends on what, prompt caches, unsettled calls and budgets. Generated by `make dashboards`.",
    rows=[LEDGER, SPENDING, CACHES, PREDICTED, BUDGETS, JOBS],
    variables=[TENANT, AGENT],
)
