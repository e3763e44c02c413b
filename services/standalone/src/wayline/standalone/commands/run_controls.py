"""The commands `wayline pause`, `wayline resume`, `wayline pauses` and `wayline running-limits`."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import quote

import typer

from wayline.standalone.commands.output import AsJson, answer

running_limits = typer.Typer(help="How many jobs run at once.", no_args_is_help=True)

Kind = Annotated[Literal["agent", "lane", "tenant"], typer.Argument(help="What kind of thing.")]
Name = Annotated[str, typer.Argument(help="The agent, the lane (interactive or batch) or the tenant.")]
Whose = Annotated[Literal["agent", "user", "key"], typer.Argument(help="Whose jobs are counted.")]
Whom = Annotated[str, typer.Argument(help="The agent, the user or the id of the key; '*' is each without its own.")]

AllowOlder = Annotated[
    bool, typer.Option("--allow-older", help="Also while services run that do not know it, of before 0.2.0.")
]


def pause(
    kind: Kind,
    name: Name,
    *,
    reason: Annotated[str, typer.Option(help="Shown with every job that waits for it.")] = "",
    now: Annotated[
        bool, typer.Option("--now", help="Stop jobs that run at their next step; else they go on to their end.")
    ] = False,
    allow_older: AllowOlder = False,
    as_json: AsJson = False,
) -> None:
    """Let the jobs of an agent, a lane or a tenant wait: they are accepted, and go on when it is resumed."""
    _require_known(allow_older)
    body = {"kind": kind, "name": name, "reason": reason, "now": now}
    answer(
        lambda client: client.post("/v1/pauses", body),
        as_json=as_json,
        draw=lambda one: f"{one['kind']} {one['name']} is paused; wayline resume {one['kind']} {one['name']} ends it",
    )


def resume(kind: Kind, name: Name, as_json: AsJson = False) -> None:
    """Let the jobs of an agent, a lane or a tenant go on."""
    answer(
        lambda client: client.delete(f"/v1/pauses/{kind}/{quote(name, safe='')}"),
        as_json=as_json,
        draw=lambda _: f"{kind} {name} is resumed",
    )


def pauses(as_json: AsJson = False) -> None:
    """List what is paused, since when, by whom and why."""
    from wayline.standalone.terminal.run_control_views import pauses_table

    answer(lambda client: client.get("/v1/pauses"), as_json=as_json, draw=pauses_table)


@running_limits.command("list")
def list_limits(as_json: AsJson = False) -> None:
    """List the limits, and how many jobs run and wait in each."""
    from wayline.standalone.terminal.run_control_views import running_limits_table

    answer(lambda client: client.get("/v1/running-limits"), as_json=as_json, draw=running_limits_table)


@running_limits.command("set")
def set_limit(
    whose: Whose,
    name: Whom,
    most: Annotated[int, typer.Argument(min=1, help="How many jobs run at once.")],
    *,
    when_full: Annotated[
        Literal["wait", "refuse"], typer.Option(help="What a job does that would be one too many.")
    ] = "wait",
    allow_older: AllowOlder = False,
    as_json: AsJson = False,
) -> None:
    """Limit how many jobs of an agent, a user or an API key run at once; those that run already go on."""
    _require_known(allow_older)
    body = {"whose": whose, "name": name, "max_running": most, "when_full": when_full}
    answer(
        lambda client: client.post("/v1/running-limits", body),
        as_json=as_json,
        draw=lambda one: f"{one['max_running']} jobs of {one['whose']} {one['name']} run at once",
    )


@running_limits.command("remove")
def remove_limit(whose: Whose, name: Whom, as_json: AsJson = False) -> None:
    """Take a limit away."""
    answer(
        lambda client: client.delete(f"/v1/running-limits/{whose}/{quote(name, safe='')}"),
        as_json=as_json,
        draw=lambda _: f"jobs of {whose} {name} are not limited any more",
    )


def _require_known(allow_older: bool) -> None:
    """End the command where services run that would not hold to it, as far as can be seen from here."""
    if allow_older:
        return
    import asyncio

    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.settings import Settings
        from wayline.standalone.upgrade.older_replicas import require_no_older

        asyncio.run(require_no_older(Settings()))
