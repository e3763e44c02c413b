"""Questions that several pages ask, and how money is shown."""

from __future__ import annotations

from .page import Choice, chosen
from .panels import Column, Metric, Sql

DOLLARS = "currencyUSD"
CENTS_OF_CENTS = 4
MODEL = "coalesce(model, 'tool ' || tool)"
NAMES_MAX = 500
TOKENS = "gen_ai_client_inference_usage"

TENANT = Choice("tenant", "Tenant", sql="SELECT DISTINCT tenant FROM tracing.jobs WHERE $__timeFilter(created_at)")
AGENT = Choice(
    "agent",
    "Agent",
    sql=f"""SELECT agent FROM tracing.jobs WHERE $__timeFilter(created_at)
        GROUP BY agent ORDER BY count(*) DESC LIMIT {NAMES_MAX}""",
)
OF_TENANT = chosen("tenant", "tenant")
OF_AGENT = chosen("agent", "agent")
THESE = f"{OF_TENANT} AND {OF_AGENT}"

TO_TRACE = Column(
    "job", link="/d/wayline-traces?var-trace=${__data.fields.trace}&${__url_time_range}", link_title="Its trace"
)
TRACE_ID = Column("trace", hidden=True)
"""What `TO_TRACE` leads to."""


def quantiles(histogram: str, *by: str, where: str = "") -> list[Metric]:
    """Return the median and the 95th percentile of a histogram, by some of its labels."""
    legend = " ".join(f"{{{{{label}}}}}" for label in by)
    # A quantile of nothing is no number, and no number is at least zero: where nothing happened nothing is drawn.
    return [
        Metric(
            f"histogram_quantile({share}, sum by ({', '.join(('le', *by))}) "
            f"(rate({histogram}_bucket{where}[$__rate_interval]))) >= 0",
            legend=f"{name} {legend}".strip(),
            examples=True,
        )
        for name, share in (("p50", 0.5), ("p95", 0.95))
    ]


def newest(gauge: str, *labels: str) -> str:
    """Return a gauge once, which every replica of tracing reads from the same place."""
    return f"max by ({', '.join(labels)}) ({gauge})"


def per_minute(counter: str, *by: str, where: str = "") -> str:
    """Return how much a counter grows each minute, by some of its labels."""
    return f"sum by ({', '.join(by)}) (rate({counter}{where}[$__rate_interval])) * 60"


def spent(what: str, *, by: str) -> str:
    """Return the statement of dollars in the window by one thing, the dearest first."""
    return f"""SELECT {what} AS {by}, coalesce(sum(cost_usd), 0)::float8 AS cost
        FROM tracing.ledger WHERE NOT open AND $__timeFilter(at) AND {THESE} GROUP BY 1 ORDER BY cost DESC"""


def spent_by_day(what: str) -> Sql:
    """Return the question of dollars by day (UTC) and one thing."""
    return Sql(
        f"""SELECT $__timeGroupAlias(at, '1d'), {what} AS metric, coalesce(sum(cost_usd), 0)::float8 AS cost
            FROM tracing.ledger WHERE NOT open AND $__timeFilter(at) AND {THESE} GROUP BY 1, 2 ORDER BY 1, 2""",
        over_time=True,
    )
