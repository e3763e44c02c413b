"""Agents, tools, dead letters."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from wayline.standalone.commands.arguments import json_in
from wayline.standalone.commands.output import AsJson, answer

agents = typer.Typer(help="Who answers a job, and how.", no_args_is_help=True)
dead_letters = typer.Typer(help="What could not be handled.", no_args_is_help=True)

SHOWN = {"name", "version", "config"}
"""What an agent is shown with."""


@agents.command("list")
def list_agents(as_json: AsJson = False) -> None:
    """The newest version of every agent."""
    from wayline.standalone.terminal.views import agents_table

    answer(lambda client: client.get("/v1/agents"), as_json=as_json, draw=agents_table)


@agents.command("show")
def show_agent(name: str, as_json: AsJson = False) -> None:
    """An agent's whole configuration."""
    answer(lambda client: client.get(f"/v1/agents/{name}"), as_json=as_json, draw=_as_json_text)


@agents.command("put")
def put_agent(
    name: str,
    file: Annotated[
        str,
        typer.Argument(help="Its configuration as JSON, also as `wayline agents show` tells it; - reads the input."),
    ],
    as_json: AsJson = False,
) -> None:
    """Save an agent; a change is a new version."""
    given = json_in(file)
    config = given["config"] if isinstance(given, dict) and set(given) >= SHOWN else given
    saved = answer(
        lambda client: client.put(f"/v1/agents/{name}", config),
        as_json=as_json,
        draw=lambda said: f"{said['name']} is saved as version {said['version']}",
    )
    for warning in saved.get("warnings", ()):
        print(f"warning: {warning}", file=sys.stderr)


@agents.command("remove")
def remove_agent(name: str, as_json: AsJson = False) -> None:
    """Retire an agent: its jobs go on, new ones are refused."""
    answer(
        lambda client: client.delete(f"/v1/agents/{name}"),
        as_json=as_json,
        draw=lambda said: f"{name} is gone" if said["deleted"] else f"there was no agent {name}",
    )


@agents.command("restore")
def restore_agent(name: str, as_json: AsJson = False) -> None:
    """Bring an agent back: a bundled one as it was delivered, any other as it was last saved."""
    answer(
        lambda client: client.post(f"/v1/agents/{name}/restore"),
        as_json=as_json,
        draw=lambda said: f"{said['name']} is back as version {said['version']}",
    )


def tools(as_json: AsJson = False) -> None:
    """The tools that agents may use."""
    from wayline.standalone.terminal.views import tools_table

    answer(lambda client: client.get("/v1/tools"), as_json=as_json, draw=tools_table)


@dead_letters.command("list")
def list_dead_letters(
    limit: Annotated[int, typer.Option(min=1, max=200)] = 20,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: AsJson = False,
) -> None:
    """Messages that could not be handled, newest first."""
    from wayline.standalone.terminal.views import dead_letters_table

    answer(
        lambda client: client.get("/v1/dead-letters", limit=limit, cursor=cursor),
        as_json=as_json,
        draw=dead_letters_table,
    )


@dead_letters.command("show")
def show_dead_letter(
    number: Annotated[int, typer.Argument(help="As `wayline dead-letters list` shows it.")], as_json: AsJson = False
) -> None:
    """One of them, with its headers and what it said."""
    answer(lambda client: client.get(f"/v1/dead-letters/{number}"), as_json=as_json, draw=_as_json_text)


@dead_letters.command("dismiss")
def dismiss_dead_letters(
    numbers: Annotated[list[int], typer.Argument(help="As `wayline dead-letters list` shows them.")],
    reason: Annotated[str, typer.Option(help="Why they need nothing more; kept for 30 days.")],
    as_json: AsJson = False,
) -> None:
    """Dismiss dead letters that need nothing more: no metric or alert counts them any longer."""
    from wayline.standalone.terminal.views import dismissed_table

    async def dismiss(client: Any) -> dict[str, Any]:
        return {
            "dismissed": [
                await client.post(f"/v1/dead-letters/{number}/dismiss", {"reason": reason}) for number in numbers
            ]
        }

    answer(dismiss, as_json=as_json, draw=dismissed_table)


@dead_letters.command("dismissed")
def list_dismissed_letters(limit: Annotated[int, typer.Option(min=1, max=200)] = 20, as_json: AsJson = False) -> None:
    """List those that were dismissed in the last 30 days, and why."""
    from wayline.standalone.terminal.views import dismissed_table

    answer(lambda client: client.get("/v1/dead-letters/dismissed", limit=limit), as_json=as_json, draw=dismissed_table)


def _as_json_text(said: Any) -> Any:
    from rich.json import JSON

    return JSON.from_data(said)
