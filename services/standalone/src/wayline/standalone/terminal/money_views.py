"""Money, drawn for a terminal: costs by group, what a job's cost is made of, budgets."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rich.console import RenderableType
from rich.markup import escape

from wayline.contracts.money import dollars
from wayline.standalone.terminal.table import table


def usd(cost: str | None) -> str:
    """Format a price; an unknown one is never zero."""
    if cost is None:
        return "cost unknown"
    amount = Decimal(cost)
    # All of its digits where six places would leave nothing of it.
    return dollars(round(amount, 6) or amount)


def costs_table(costs: dict[str, Any]) -> RenderableType:
    """Draw what was spent, one row for each group."""
    rows = costs["rows"]
    groups = list(rows[0]["group"]) if rows else []
    shown = [[*(escape(row["group"][name]) for name in groups), *_cost_columns(row)] for row in rows]
    total: list[str] = []
    if len(rows) > 1 and (of_all := costs.get("total")):
        cut = costs.get("groups", len(rows)) - len(rows)
        name = f"total, with {cut} cheaper groups that are not shown" if cut > 0 else "total"
        total = [name, *([""] * (len(groups) - 1)), *_cost_columns(of_all)]
    columns = (
        *groups,
        "calls",
        "input",
        "cached",
        "output",
        "cost",
        "predicted",
        "cache saved",
        "cache lost",
        "unsettled",
    )
    return table(columns, shown, nothing="nothing was spent yet", total=total)


def _cost_columns(row: dict[str, Any]) -> list[str]:
    unknown = f" + {row['calls_unknown']} unknown" if row["calls_unknown"] else ""
    return [
        str(row["calls"]),
        str(row["usage"]["input"]),
        "" if row["cache_read_share"] is None else f"{row['cache_read_share']:.0%}",
        str(row["usage"]["output"]),
        usd(row["cost_usd"]) + unknown,
        usd(row["predicted_usd"]) if row.get("predicted_usd") is not None else "",
        usd_or_blank(row["saved_usd"]),
        usd_or_blank(row["lost_usd"]),
        unsettled(row["calls_unsettled"], row["unsettled_lower_usd"], row["unsettled_upper_usd"]),
    ]


def usd_or_blank(amount: str) -> str:
    """Format an amount; empty for zero."""
    return usd(amount) if Decimal(amount) else ""


def unsettled(calls: int, lower: str, upper: str | None) -> str:
    """Format the number of calls whose usage never arrived, with the bounds of their cost."""
    if not calls:
        return ""
    most = "unknown" if upper is None else usd(upper)
    return f"{calls} calls, {usd(lower)} to {most}"


def job_costs(job: dict[str, Any]) -> str:
    """Format the parts of a job's cost in one line; empty where there is only one."""
    costs = job.get("costs") or {}
    words = [
        f"{escape(name)} {usd(spent)}"
        for kind in ("model", "tool", "aux")
        for name, spent in costs.get(kind, {}).items()
        if spent is None or Decimal(spent)
    ]
    if Decimal(costs.get("saved_usd", 0)):
        words.append(f"the prompt cache saved {usd(costs['saved_usd'])}")
    if Decimal(costs.get("lost_usd", 0)):
        words.append(f"cache writes lost {usd(costs['lost_usd'])}")
    if costs.get("unsettled_calls"):
        figures = (costs["unsettled_calls"], costs["unsettled_lower_usd"], costs["unsettled_upper_usd"])
        words.append(f"unsettled: {unsettled(*figures)}")
    return " · ".join(words)


def budgets_table(page: dict[str, Any]) -> RenderableType:
    """Draw every budget and how much of it is used."""
    return table(
        ("budget", "limit", "window", "for", "spent", "held", "unsettled", "left", "waiting", "alerts"),
        (_budget_columns(budget) for budget in page["budgets"]),
        nothing=f"no budgets: a job may spend {usd(page.get('job_budget_usd'))} of its own",
    )


def _budget_columns(budget: dict[str, Any]) -> list[str]:
    scope = [f"agent {escape(budget['agent'])}"] if budget["agent"] else []
    scope += [f"user {escape(budget['user_id'])}"] if budget["user_id"] else []
    zone = "" if budget["timezone"] == "UTC" or budget["window"] in ("job", "total") else f" {budget['timezone']}"
    return [
        budget["name"],
        usd(budget["limit_usd"]) + ("" if budget["hard"] else " soft"),
        budget["window"] + zone,
        ", ".join(scope) or "all jobs",
        usd(budget["spent_usd"]),
        usd(budget["reserved_usd"]),
        usd_or_blank(budget["unsettled_usd"]),
        "" if budget["left_usd"] is None else usd(budget["left_usd"]),
        str(budget["waiting_jobs"] or ""),
        ", ".join(f"{Decimal(alert['threshold']):.0%}" for alert in budget["raised"]),
    ]
