"""The commands `wayline mcp`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from wayline.standalone.commands import mcp_logins, mcp_resources, server_config
from wayline.standalone.commands.arguments import ServerName, fail, read_json
from wayline.standalone.commands.output import AsJson, answer, console, conversation, print_json

app = typer.Typer(help="MCP servers, whose tools agents use.", no_args_is_help=True)
app.add_typer(mcp_logins.app)
app.add_typer(mcp_resources.app)


@app.command("list")
def list_servers(as_json: AsJson = False) -> None:
    """List the servers with their state."""
    from wayline.standalone.terminal.server_views import servers_table

    answer(lambda client: client.get("/v1/mcp/servers"), as_json=as_json, draw=servers_table)


@app.command()
def add(
    name: Annotated[str | None, typer.Argument(help="Small letters, digits and -; its tools are NAME__TOOL.")] = None,
    command: Annotated[
        list[str] | None, typer.Argument(help="A program with its arguments, after --: -- npx -y PACKAGE.")
    ] = None,
    *,
    url: Annotated[str | None, typer.Option(help="Or where it is over HTTP.")] = None,
    sse: Annotated[bool, typer.Option("--sse", help="The URL speaks the older transport, HTTP with SSE.")] = False,
    header: Annotated[
        list[str] | None, typer.Option(metavar="NAME:VALUE", help="Sent to the URL; kept as a secret.")
    ] = None,
    oauth: Annotated[bool, typer.Option("--oauth", help="The URL needs a login: `wayline mcp login NAME`.")] = False,
    users: Annotated[bool, typer.Option("--users", help="With --oauth: each user calls with a login of their own.")] = (
        False
    ),
    client: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="With --oauth: JSON with client_id, client_secret, issuer, scope."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=VALUE]", help="For the program, kept as a secret; without a value: our own."),
    ] = None,
    effect: Annotated[
        list[str] | None, typer.Option(metavar="TOOL=EFFECT", help="read, idempotent, reconcile or once (the default).")
    ] = None,
    ask: Annotated[str | None, typer.Option(help="When a person approves calls: always, writes or never.")] = None,
    trusted: Annotated[bool, typer.Option("--trusted", help="Believe the server's own hints of effects.")] = False,
    untrusted: Annotated[
        bool | None,
        typer.Option(
            "--untrusted/--no-untrusted",
            help="Its results are the words of strangers, so that jobs that read one need approvals: the default "
            "without --trusted.",
        ),
    ] = None,
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="How long a call may take.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Save it also when it cannot be connected to.")] = False,
    as_json: AsJson = False,
) -> None:
    """Try a server, show what it offers, and save it; without arguments, answer questions."""
    given = {
        "url": url,
        "sse": sse,
        "headers": dict(map(server_config.header, header or ())),
        "oauth": server_config.oauth(client, users=users) if oauth else None,
        "command": command[0] if command else None,
        "args": command[1:] if command else None,
        "env": dict(map(server_config.variable, env or ())),
        "effects": dict(map(server_config.effect, effect or ())),
        "ask": ask,
        "trusted": trusted,
        "untrusted": untrusted,
        "timeout_s": timeout,
    }
    _try_and_save(name, given, force=force, as_json=as_json)


def _try_and_save(name: str | None, given: dict[str, Any], *, force: bool, as_json: bool) -> None:
    """Save a server that can be connected to; ask on the terminal for one that was not given."""
    asking = name is None
    if name is None:
        if as_json or not _on_terminal():
            fail("give the server's name and its --url, or its command after --")
        name, given = server_config.asked()
    config = server_config.without_defaults(given)
    if line := server_config.command_line(config):
        print(f"{name} runs: {line}", file=sys.stderr)
    needs_login = "oauth" in config
    # Nobody is logged in yet, so it could not be connected to.
    report = {"ok": True} if needs_login else _tried(name, config, as_json=as_json)
    _require_wanted(name, report, force=force, asking=asking, as_json=as_json)
    server = conversation(lambda client: client.put(f"/v1/mcp/servers/{name}", config), as_json=as_json)
    if as_json:
        print_json({"report": report, "server": server})
        return
    print(f"{name} is saved: its tools are {name}__…")
    if server["config"]["untrusted"]:
        print(f"{server_config.STRANGERS}; add {name} again with --no-untrusted where that is not so")
    if needs_login:
        print(f"log in with: wayline mcp login {name}")


def _require_wanted(name: str, report: dict[str, Any], *, force: bool, asking: bool, as_json: bool) -> None:
    """End the command where a server that was tried is not to be saved."""
    if report["ok"]:
        if asking and not typer.confirm("Save it?", default=True):
            raise typer.Exit(1)
    elif not force and not (asking and typer.confirm("Save it all the same?", default=False)):
        if not as_json:
            fail(f"{name} is not saved; --force saves it all the same")
        print_json({"report": report, "server": None})
        raise typer.Exit(1)


@app.command("import")
def import_servers(
    file: Annotated[str, typer.Argument(help="JSON with `mcpServers`, as desktop clients keep it; - reads the input.")],
    replace: Annotated[bool, typer.Option("--replace", help="Also those whose name is saved already.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Run the programs that are shown without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the programs of a desktop client's configuration, ask, and save its servers. Exit code 1: not all could be.

    A program runs from the moment when it is saved.
    """
    content = read_json(file)
    servers = content.get("mcpServers", content.get("servers")) if isinstance(content, dict) else None
    if not isinstance(servers, dict) or not all(isinstance(server, dict) for server in servers.values()):
        fail(f'{file} has no servers: it needs {{"mcpServers": {{"NAME": {{"command": "…", "args": […]}}}}}}')
    plan = [server_config.planned(given, server, os.environ) for given, server in servers.items()]
    _require_consent(plan, yes=yes)
    done = conversation(lambda client: _import_all(client, plan, replace=replace), as_json=as_json)
    if as_json:
        print_json({"servers": done})
    else:
        from wayline.standalone.terminal.server_views import import_line

        for one in done:
            console().print(import_line(one), soft_wrap=True)
        if any(one["saved"] for one in done):
            print(f"Of each {server_config.STRANGERS}; `wayline mcp add NAME --no-untrusted …` changes that")
    if any(not one["saved"] for one in done):
        raise typer.Exit(1)


def _on_terminal() -> bool:
    """Return whether a person can answer questions here."""
    return sys.stdin.isatty()


def _require_consent(plan: Sequence[server_config.Planned], *, yes: bool) -> None:
    """Show the programs that would be started, and end the command where nobody agrees to run them."""
    lines = [f"{one.name} runs: {line}" for one in plan if (line := server_config.command_line(one.config))]
    # The output is for what became of each server.
    print("\n".join(lines), end="\n" if lines else "", file=sys.stderr)
    if not lines or yes:
        return
    if not _on_terminal():
        fail(f"nothing is imported, because {len(lines)} of these servers are programs: --yes runs what is shown")
    typer.confirm(f"Run {len(lines)} where the tool-registry runs?", abort=True, err=True)


@app.command()
def test(name: ServerName, as_json: AsJson = False) -> None:
    """Connect to a server once more, and show what it offers. Exit code 1: no connection."""
    from wayline.standalone.terminal.server_views import report

    found = answer(lambda client: client.post(f"/v1/mcp/servers/{name}/test"), as_json=as_json, draw=report)
    if not found["ok"]:
        raise typer.Exit(1)


@app.command()
def enable(name: ServerName, as_json: AsJson = False) -> None:
    """Connect to a server again that was disabled."""
    _switch(name, "enable", as_json=as_json)


@app.command()
def disable(name: ServerName, as_json: AsJson = False) -> None:
    """Take a server's tools away; its configuration and its secrets stay."""
    _switch(name, "disable", as_json=as_json)


@app.command()
def approve(
    name: ServerName,
    tool: Annotated[list[str] | None, typer.Option(help="Only this tool; several may be given.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve what is shown without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show definitions that have changed since they were approved, and approve them."""
    from wayline.standalone.terminal.server_views import changed_definitions

    changes = conversation(lambda client: client.get(f"/v1/mcp/servers/{name}"), as_json=as_json)["changes"]
    changes = [change for change in changes if not tool or change["tool"] in tool]
    if as_json and not yes:
        print_json({"changes": changes})
        return
    if not changes:
        fail(f"no definition of {name} waits for approval" + (" under that name" if tool else ""))
    if not as_json:
        console().print(changed_definitions(changes), soft_wrap=True)
    if not yes:
        if not _on_terminal():
            fail("nothing is approved: --yes approves what is shown")
        typer.confirm(f"Approve {len(changes)}?", abort=True)
    # By their hashes: what the server offers by now may be something else than what was shown.
    body = {"sha256": [change["sha256"] for change in changes]}
    server = conversation(lambda client: client.post(f"/v1/mcp/servers/{name}/approve", body), as_json=as_json)
    if as_json:
        print_json(server)
    else:
        left = f"; {server['quarantined']} still wait" if server["quarantined"] else ""
        print(f"{len(changes)} approved{left}")


@app.command()
def impact(
    name: ServerName,
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="JSON of a server that is not saved so; - reads the input.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which agents, parked jobs and recorded calls a change of a server touches. Exit code 1: calls would fail."""
    from wayline.standalone.terminal.server_views import impact_view

    path = f"/v1/mcp/servers/{name}/impact"
    given = None if config is None else read_json(config)
    found = answer(
        lambda client: client.get(path) if given is None else client.post(path, given),
        as_json=as_json,
        draw=impact_view,
    )
    if found["would_fail"]:
        raise typer.Exit(1)


@app.command()
def remove(name: ServerName, as_json: AsJson = False) -> None:
    """Remove a server with its secrets."""
    answer(
        lambda client: client.delete(f"/v1/mcp/servers/{name}"),
        as_json=as_json,
        draw=lambda reply: f"{name} is removed" if reply["deleted"] else f"there is no server {name} of your own",
    )


def _tried(name: str, config: dict[str, Any], *, as_json: bool) -> dict[str, Any]:
    """Try a server that is not saved, and show what it offers."""
    found = conversation(
        lambda client: client.post("/v1/mcp/servers/test", config, params={"name": name}), as_json=as_json
    )
    if not as_json:
        from wayline.standalone.terminal.server_views import report

        console().print(report(found), soft_wrap=True)
    return found


async def _import_all(client: Any, plan: Sequence[server_config.Planned], *, replace: bool) -> list[dict[str, Any]]:
    from wayline.client import ApiError

    saved = {server["name"] for server in (await client.get("/v1/mcp/servers"))["servers"]}
    done: list[dict[str, Any]] = []
    names: set[str] = set()
    for given, name, config, disabled, problem in plan:
        why = problem
        try:
            if problem:
                raise server_config.CannotImport(problem)
            if name in names or (name in saved and not replace):
                raise server_config.CannotImport(f"{name} is saved already; --replace saves it anew")
            await client.put(f"/v1/mcp/servers/{name}", config)
            names.add(name)
            if disabled:
                await client.post(f"/v1/mcp/servers/{name}/disable")
        except (ApiError, server_config.CannotImport) as error:
            why = str(error)
        done.append({"given": given, "name": name, "saved": name in names and not why, "why": why})
    return done


def _switch(name: str, verb: str, *, as_json: bool) -> None:
    from wayline.standalone.terminal.server_views import server_line

    answer(lambda client: client.post(f"/v1/mcp/servers/{name}/{verb}"), as_json=as_json, draw=server_line)
