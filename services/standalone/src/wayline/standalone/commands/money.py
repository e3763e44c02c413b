"""The commands `wayline costs` and `wayline budgets`."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from wayline.standalone.commands.arguments import fail, past_moment
from wayline.standalone.commands.output import AsJson, answer, write_file

budgets = typer.Typer(help="What may be spent, and how much of it is.", no_args_is_help=True)


def costs(
    *,
    by: Annotated[
        str,
        typer.Option(
            help="Comma-separated: model, provider, agent, day, hour, tool, user, session, job, kind, purpose, tier, "
            "schedule, key, cache_break, tenant, version, label, tag."
        ),
    ] = "model",
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="From when on: 7d, 12h, or a date (UTC).")] = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Only what was spent before, alike.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only of this agent's jobs.")] = None,
    model: Annotated[str | None, typer.Option(help="Only of this model, or provider/model.")] = None,
    tool: Annotated[str | None, typer.Option(help="Only of this tool.")] = None,
    user: Annotated[str | None, typer.Option(help="Only for this user.")] = None,
    session: Annotated[str | None, typer.Option(help="Only of this session.")] = None,
    job: Annotated[str | None, typer.Option(help="Only of this job.")] = None,
    label: Annotated[str | None, typer.Option(help="Only of jobs whose version was chosen by this label.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="KEY:VALUE", help="Only of jobs with this tag. Can be repeated.")
    ] = None,
    tz: Annotated[str | None, typer.Option(help="Whose days are meant, for instance Europe/Berlin.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Write a table for a spreadsheet.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was spent, what prompt caches saved, and which costs are unknown."""
    from wayline.standalone.terminal.money_views import costs_table

    wanted: dict[str, Any] = {
        "since": past_moment(since, "--since"),
        "until": past_moment(until, "--until"),
        "agent": agent,
        "model": model,
        "tool": tool,
        "user_id": user,
        "session_id": session,
        "job_id": job,
        "label": label,
        "tag": tag,
    }
    if as_csv:
        write_file("/v1/costs", {**wanted, "group_by": by, "tz": tz, "format": "csv"})
        return
    answer(lambda client: client.get("/v1/costs", group_by=by, tz=tz, **wanted), as_json=as_json, draw=costs_table)


@budgets.command("list")
def list_budgets(as_json: AsJson = False) -> None:
    """List every budget, and how much of it is used."""
    from wayline.standalone.terminal.money_views import budgets_table

    answer(lambda client: client.whole("/v1/budgets", "budgets"), as_json=as_json, draw=budgets_table)


@budgets.command("set")
def set_budget(
    name: Annotated[str, typer.Argument(help="What it is called; the same name again changes it.")],
    limit: Annotated[str, typer.Argument(metavar="USD", help="At most so many dollars.")],
    *,
    window: Annotated[str, typer.Option(help="job, hour, day, week, month or total.")] = "month",
    timezone: Annotated[str, typer.Option(help="By whose clock it begins, for instance Europe/Berlin.")] = "UTC",
    agent: Annotated[str | None, typer.Option(help="Only for this agent's jobs.")] = None,
    user: Annotated[str | None, typer.Option(help="Only for this user's jobs.")] = None,
    hard: Annotated[bool, typer.Option("--hard/--soft", help="Refuse what exceeds it, or only alert.")] = True,
    alert: Annotated[list[str] | None, typer.Option(help="Alert at this share of it; may be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """Save a budget; raising it wakes the jobs that waited for it."""
    from wayline.standalone.terminal.money_views import budgets_table

    if not re.fullmatch(r"\$?[0-9]+(\.[0-9]+)?", limit):
        fail(f"{limit!r} is no sum of dollars, such as 5 or 0.25")
    body: dict[str, Any] = {
        "limit_usd": limit.removeprefix("$"),
        "window": window,
        "timezone": timezone,
        "agent": agent,
        "user_id": user,
        "hard": hard,
        **({"alerts": alert} if alert else {}),
    }
    answer(
        lambda client: client.put(f"/v1/budgets/{name}", body),
        as_json=as_json,
        draw=lambda budget: budgets_table({"budgets": [budget]}),
    )


@budgets.command("remove")
def remove_budget(name: str, as_json: AsJson = False) -> None:
    """Remove a budget; jobs that waited for it go on."""
    answer(
        lambda client: client.delete(f"/v1/budgets/{name}"),
        as_json=as_json,
        draw=lambda _: f"{name} is removed",
    )
