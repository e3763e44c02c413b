"""The commands of `wayline mcp` for resources and prompts of servers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated
from urllib.parse import quote

import typer

from wayline.standalone.commands.arguments import ServerName, fail
from wayline.standalone.commands.output import AsJson, answer

app = typer.Typer()


@app.command()
def resources(name: ServerName, as_json: AsJson = False) -> None:
    """List a server's resources, and the templates of their addresses."""
    from wayline.standalone.terminal.server_views import resources_table

    answer(lambda client: client.get(f"/v1/mcp/servers/{name}/resources"), as_json=as_json, draw=resources_table)


@app.command()
def read(
    name: ServerName,
    uri: Annotated[str, typer.Argument(help="As `wayline mcp resources` shows it.")],
    user: Annotated[str | None, typer.Option(metavar="ID", help="As this user, where each user logs in.")] = None,
    as_json: AsJson = False,
) -> None:
    """Read a resource of a server."""
    from wayline.standalone.terminal.server_views import contents

    path = f"/v1/mcp/servers/{name}/resources/read"
    answer(
        lambda client: client.get(path, uri=uri, user_id=user),
        as_json=as_json,
        draw=partial(contents, shown=_on_output()),
    )


@app.command()
def prompts(
    name: ServerName,
    prompt: Annotated[str | None, typer.Argument(help="Fill in this one.")] = None,
    argument: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="What it is filled in with.")] = None,
    user: Annotated[str | None, typer.Option(metavar="ID", help="As this user, where each user logs in.")] = None,
    as_json: AsJson = False,
) -> None:
    """List a server's prompts, or fill in one and show its messages."""
    from wayline.standalone.terminal.server_views import messages, prompts_table

    path = f"/v1/mcp/servers/{name}/prompts"
    if prompt is None:
        answer(lambda client: client.get(path), as_json=as_json, draw=prompts_table)
        return
    values = [one.partition("=") for one in argument or ()]
    if not all(separator for _, separator, _ in values):
        fail("an --argument is NAME=VALUE")
    body = {"arguments": {key: value for key, _, value in values}, "user_id": user}
    answer(
        lambda client: client.post(f"{path}/{quote(prompt, safe='')}", body),
        as_json=as_json,
        draw=partial(messages, shown=_on_output()),
    )


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _on_output() -> Callable[[str], str]:
    """Return how a server's words are printed: as they are into a file, and without control characters on a terminal.

    Such characters could change what the terminal shows, or make it do something.
    """
    if not _is_terminal():
        return str
    from wayline.tool_registry.definitions.visible_text import visible

    return visible
