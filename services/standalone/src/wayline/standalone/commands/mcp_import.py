"""The command `wayline mcp import`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wayline.standalone.commands import server_config
from wayline.standalone.commands.arguments import fail, on_terminal, read_json
from wayline.standalone.commands.output import AsJson, console, conversation, print_json

if TYPE_CHECKING:
    from wayline.contracts.imported_servers import PlannedServer

app = typer.Typer()


@app.command("import")
def import_servers(
    file: Annotated[str, typer.Argument(help="JSON with `mcpServers`, as desktop clients keep it; - reads the input.")],
    replace: Annotated[bool, typer.Option("--replace", help="Also those whose name is saved already.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Run the programs that are shown without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the programs of a desktop client's configuration, ask, and save its servers. Exit code 1: not all could be.

    A program runs from the moment when it is saved, unless the file has it as disabled.
    """
    from wayline.contracts.imported_servers import SERVERS_MAX, planned

    content = read_json(file)
    servers = content.get("mcpServers", content.get("servers")) if isinstance(content, dict) else None
    if not isinstance(servers, dict):
        fail(f'{file} has no servers: it needs {{"mcpServers": {{"NAME": {{"command": "…", "args": […]}}}}}}')
    if len(servers) > SERVERS_MAX:
        fail(f"{file} has {len(servers)} servers: import {SERVERS_MAX} at once at most")
    plan = [planned(given, server, os.environ) for given, server in servers.items()]
    _require_consent(plan, yes=yes)
    done = conversation(lambda client: _import_all(client, plan, replace=replace), as_json=as_json)
    if as_json:
        print_json({"servers": done})
    else:
        from wayline.standalone.terminal.server_views import import_line

        for one in done:
            console().print(import_line(one), soft_wrap=True)
        if any(one["saved"] for one in done):
            print(f"Of each {server_config.STRANGERS}; `wayline mcp set NAME --no-untrusted` changes that")
    if any(not one["saved"] for one in done):
        raise typer.Exit(1)


def _require_consent(plan: Sequence[PlannedServer], *, yes: bool) -> None:
    """Show the programs that would be started, and end the command where nobody agrees to run them."""
    running = [one for one in plan if not one.disabled]
    lines = [f"{one.name} runs: {line}" for one in running if (line := server_config.command_line(one.config))]
    # The output is for what became of each server.
    print("\n".join(lines), end="\n" if lines else "", file=sys.stderr)
    if not lines or yes:
        return
    if not on_terminal():
        fail(f"nothing is imported, because {len(lines)} of these servers are programs: --yes runs what is shown")
    typer.confirm(f"Run {len(lines)} where the tool-registry runs?", abort=True, err=True)


async def _import_all(client: Any, plan: Sequence[PlannedServer], *, replace: bool) -> list[dict[str, Any]]:
    from wayline.client import ApiError
    from wayline.contracts.imported_servers import CannotImport

    saved = {server["name"] for server in (await client.whole("/v1/mcp/servers", "servers"))["servers"]}
    done: list[dict[str, Any]] = []
    names: set[str] = set()
    for one in plan:
        why, advice = one.why, ""
        try:
            if why:
                raise CannotImport(why)
            if one.name in names or (one.name in saved and not replace):
                raise CannotImport(f"{one.name} is saved already; --replace saves it anew")
            # At once, and not disabled afterwards: a program runs from the moment when it is saved.
            params = {"enabled": False} if one.disabled else None
            server = await client.put(f"/v1/mcp/servers/{one.name}", one.config, params=params)
            advice = server.get("advice", "")
            names.add(one.name)
        except (ApiError, CannotImport) as error:
            why = str(error)
        done.append({**one.about(), "saved": not why, "why": why, "advice": advice})
    return done
