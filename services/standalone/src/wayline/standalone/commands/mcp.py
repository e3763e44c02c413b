"""The commands `wayline mcp`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from wayline.standalone.commands import (
    mcp_bridge,
    mcp_import,
    mcp_logins,
    mcp_resources,
    mcp_secrets,
    mcp_set,
    server_config,
)
from wayline.standalone.commands.arguments import ServerName, fail, on_terminal, read_json
from wayline.standalone.commands.output import AsJson, answer, console, conversation, print_json

app = typer.Typer(help="MCP servers, whose tools agents use.", no_args_is_help=True)
app.add_typer(mcp_import.app)
app.add_typer(mcp_bridge.app)
app.add_typer(mcp_set.app)
app.add_typer(mcp_logins.app)
app.add_typer(mcp_resources.app)
app.add_typer(mcp_secrets.app, name="secrets")


@app.command("list")
def list_servers(as_json: AsJson = False) -> None:
    """List the servers with their state."""
    from wayline.standalone.terminal.server_views import servers_table

    answer(lambda client: client.whole("/v1/mcp/servers", "servers"), as_json=as_json, draw=servers_table)


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
    accept_effects: Annotated[
        bool, typer.Option("--accept-effects", help="Declare the effects that the server's own hints propose.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Also where that name is saved already.")] = False,
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
    _try_and_save(name, given, replace=replace, force=force, accept_effects=accept_effects, as_json=as_json)


def _try_and_save(
    name: str | None, given: dict[str, Any], *, replace: bool, force: bool, accept_effects: bool, as_json: bool
) -> None:
    """Save a server that can be connected to; ask on the terminal for one that was not given."""
    asking = name is None
    if name is None:
        if as_json or not on_terminal():
            fail("give the server's name and its --url, or its command after --")
        name, given = server_config.asked()
    server_config.require_name(name)
    config = server_config.without_defaults(given)
    server_config.require_one_way(config)
    _require_new(name, replace=replace, as_json=as_json)
    if line := server_config.command_line(config):
        print(f"{name} runs: {line}", file=sys.stderr)
    needs_login = "oauth" in config
    if needs_login and accept_effects:
        fail(f"nobody is logged in to it yet: save it, log in, and then wayline mcp set {name} --accept-effects")
    # Nobody is logged in yet, so it could not be connected to.
    report = {"ok": True} if needs_login else _tried(name, config, as_json=as_json)
    _require_wanted(name, report, force=force, asking=asking, as_json=as_json)
    # What was shown is what will be approved, should the server offer something else a moment later.
    params: dict[str, Any] = {"shown": report["sha256"]} if report.get("sha256") else {}
    params |= {"accept_effects": True} if accept_effects else {}
    server = conversation(lambda client: client.put(f"/v1/mcp/servers/{name}", config, params=params), as_json=as_json)
    if as_json:
        print_json({"report": report, "server": server})
        return
    print(f"{name} is saved: its tools are {name}__…")
    if server["config"]["untrusted"]:
        print(f"{server_config.STRANGERS}; `wayline mcp set {name} --no-untrusted` changes that")
    for warning in server["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    # A server that is slow to start has no tools yet; those of the try are what was saved.
    if advice := server.get("advice") or report.get("advice"):
        print(advice)
    if needs_login:
        print(f"log in with: wayline mcp login {name}")


def _require_new(name: str, *, replace: bool, as_json: bool) -> None:
    """End the command where a server of the name is saved and is not to be replaced."""
    if replace or name not in _saved_names(as_json=as_json):
        return
    if as_json or not on_terminal():
        fail(f"{name} is saved already: `wayline mcp set {name}` changes it, --replace saves another in its place")
    typer.confirm(f"{name} is saved already. Replace it, with its secrets, effects and approvals?", abort=True)


def _saved_names(*, as_json: bool) -> set[str]:
    """Return the names of the tenant's own servers."""
    listed = conversation(lambda client: client.whole("/v1/mcp/servers", "servers"), as_json=as_json)["servers"]
    return {server["name"] for server in listed if server["config"] is not None}


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

    path = f"/v1/mcp/servers/{name}"
    found = conversation(lambda client: client.get(path, tool=tool or None), as_json=as_json)
    changes = [change for change in found["changes"] if not tool or change["tool"] in tool]
    if as_json and not yes:
        print_json({"changes": changes})
        return
    if not changes:
        fail(f"no definition of {name} waits for approval" + (" under that name" if tool else ""))
    if not as_json:
        console().print(changed_definitions(changes), soft_wrap=True)
        if not tool and found["quarantined"] > len(changes):
            print(f"{len(changes)} of {found['quarantined']} shown")
    if not yes:
        if not on_terminal():
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
        draw=lambda _: f"{name} is removed",
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


def _switch(name: str, verb: str, *, as_json: bool) -> None:
    from wayline.standalone.terminal.server_views import server_line

    answer(lambda client: client.post(f"/v1/mcp/servers/{name}/{verb}"), as_json=as_json, draw=server_line)
