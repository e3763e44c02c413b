"""The command `wayline router backtest`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from wayline.standalone.commands.output import AsJson, answer
from wayline.standalone.commands.times import past_time

router = typer.Typer(help="Which model takes a job.", no_args_is_help=True)


@router.callback()
def _group() -> None:
    """Compare routing policies."""


@router.command()
def backtest(
    policy: Annotated[
        str, typer.Argument(help="current, locked, all-standard, all-premium, or a JSON or YAML file of overrides.")
    ],
    since: Annotated[str, typer.Option(help="How far back: 7d, 12h, or a date.")] = "7d",
    as_json: AsJson = False,
) -> None:
    """Decide recorded jobs again, calling no provider: which tiers and costs change. `current` must change nothing."""
    from datetime import UTC, datetime

    from wayline.standalone.recorded import backtest as backtesting
    from wayline.standalone.terminal.list_views import backtest_table

    try:
        chosen, after = backtesting.load_policy(policy), past_time(since, datetime.now(UTC))
    except ValueError as error:
        print(f"wayline: {error}", file=sys.stderr)
        raise typer.Exit(1) from None

    async def work(client: Any) -> dict[str, Any]:
        return await backtesting.backtest(client, chosen, since=after)

    answer(work, as_json=as_json, draw=backtest_table)
