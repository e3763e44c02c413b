"""The quality page of Grafana: what agents achieve, in how many steps, how fast and for how much."""

from __future__ import annotations

from wayline.telemetry import names

from .page import Dashboard, Row, chosen
from .panels import Column, Panel, Sql
from .questions import AGENT, CENTS_OF_CENTS, DOLLARS, OF_AGENT, OF_TENANT, TENANT, THESE

ENDED = f"ended_at IS NOT NULL AND $__timeFilter(ended_at) AND {THESE}"
SECONDS = "extract(epoch FROM ended_at - created_at)::float8"
FIRST_S = f"(attributes ->> '{names.GEN_AI_FIRST_CHUNK}')::float8"


def over_time(figure: str, *, name: str = "value") -> Sql:
    """Return the question of a figure of ended jobs over time, by agent."""
    return Sql(
        f"""SELECT $__timeGroupAlias(ended_at, $__interval), agent AS metric, {figure} AS {name}
            FROM tracing.jobs WHERE {ENDED} GROUP BY 1, 2 ORDER BY 1, 2""",
        over_time=True,
    )


OUTCOMES = Row(
    "What agents achieve",
    [
        Panel(
            "Agents of the window",
            "Ended jobs of each agent: how many completed, failed or answered in part, in how many steps, how "
            "fast, and for how much. A cost that nobody knows is in no mean.",
            [
                Sql(f"""SELECT agent, count(*) AS jobs,
                        (count(*) FILTER (WHERE status = 'completed'))::float8 / count(*) AS completed,
                        (count(*) FILTER (WHERE status = 'failed'))::float8 / count(*) AS failed,
                        (count(*) FILTER (WHERE partial))::float8 / count(*) AS partial,
                        avg(steps)::float8 AS steps,
                        percentile_cont(0.5) WITHIN GROUP (ORDER BY {SECONDS}) AS p50,
                        percentile_cont(0.95) WITHIN GROUP (ORDER BY {SECONDS}) AS p95,
                        avg(cost_usd)::float8 AS cost
                    FROM tracing.jobs WHERE {ENDED} GROUP BY agent ORDER BY jobs DESC LIMIT 100""")
            ],
            unit="short",
            kind="table",
            width=24,
            height=6,
            decimals=CENTS_OF_CENTS,
            columns=[
                *(Column(name, unit="percentunit") for name in ("completed", "failed", "partial")),
                *(Column(name, unit="s") for name in ("p50", "p95")),
                Column("cost", unit=DOLLARS),
            ],
        ),
        Panel(
            "Satisfaction",
            "The mean score of the feedback given in the window, from 0 to 1, by agent and by what was judged.",
            [
                Sql(f"""SELECT jobs.agent, feedback.key AS judged, count(*) AS judgements,
                        avg(feedback.score) AS score
                    FROM tracing.feedback JOIN tracing.jobs USING (tenant, job_id)
                    WHERE $__timeFilter(feedback.at) AND {chosen("feedback.tenant", "tenant")} AND {OF_AGENT}
                    GROUP BY 1, 2 ORDER BY judgements DESC LIMIT 100""")
            ],
            unit="short",
            kind="table",
            width=6,
            decimals=2,
            columns=[Column("score", unit="percentunit")],
        ),
        Panel(
            "Jobs that failed",
            "The share of ended jobs that failed, by agent.",
            [over_time("(count(*) FILTER (WHERE status = 'failed'))::float8 / count(*)")],
            unit="percentunit",
            width=6,
        ),
        Panel(
            "Why jobs failed",
            "Failed jobs of the window by code.",
            [
                Sql(f"""SELECT coalesce(error_code, '-') AS error, count(*) AS jobs FROM tracing.jobs
                    WHERE status = 'failed' AND {ENDED} GROUP BY 1 ORDER BY jobs DESC LIMIT 20""")
            ],
            unit="short",
            kind="bargauge",
            width=6,
        ),
        Panel(
            "Tool calls that succeeded",
            "The share of tool calls that ended well; those that were skipped are in none.",
            [
                Sql(
                    f"""SELECT $__timeGroupAlias(start, $__interval), 'succeeded' AS metric,
                        (count(*) FILTER (WHERE status = 'ok'))::float8 / count(*) AS value
                    FROM tracing.spans
                    WHERE seq > 0 AND name LIKE 'execute_tool %' AND status IN ('ok', 'error') AND {OF_TENANT}
                        AND $__timeFilter(start)
                    GROUP BY 1 ORDER BY 1""",
                    over_time=True,
                )
            ],
            unit="percentunit",
            width=6,
        ),
    ],
)

EFFORT = Row(
    "With what effort",
    [
        Panel(
            "Steps a job", "The mean of ended jobs, by agent.", [over_time("avg(steps)::float8")], unit="short", width=6
        ),
        Panel(
            "Dollars a job",
            "The mean of ended jobs whose cost is known, by agent.",
            [over_time("coalesce(avg(cost_usd), 0)::float8")],
            unit=DOLLARS,
            width=6,
            decimals=CENTS_OF_CENTS,
        ),
        Panel(
            "Seconds a job",
            "The median of ended jobs from submission to end, by agent.",
            [over_time(f"percentile_cont(0.5) WITHIN GROUP (ORDER BY {SECONDS})")],
            unit="s",
            width=6,
        ),
        Panel(
            "First token",
            "The median time to the first word of an answer.",
            [
                Sql(
                    f"""SELECT $__timeGroupAlias(start, $__interval), 'median' AS metric,
                        percentile_cont(0.5) WITHIN GROUP (ORDER BY {FIRST_S}) AS value
                    FROM tracing.spans
                    WHERE seq > 0 AND name LIKE 'chat %' AND {FIRST_S} IS NOT NULL AND {OF_TENANT}
                        AND $__timeFilter(start)
                    GROUP BY 1 ORDER BY 1""",
                    over_time=True,
                )
            ],
            unit="s",
            width=6,
        ),
    ],
)

QUALITY = Dashboard(
    uid="wayline-quality",
    title="Wayline quality",
    description="What agents achieve, in how many steps, how fast and for how much. Generated by `make dashboards`.",
    rows=[OUTCOMES, EFFORT],
    variables=[TENANT, AGENT],
)
