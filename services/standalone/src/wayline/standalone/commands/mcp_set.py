"""The command `wayline mcp set`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wayline.standalone.commands import server_config
from wayline.standalone.commands.arguments import ServerName, fail
from wayline.standalone.commands.output import AsJson, conversation, print_json

app = typer.Typer()


@app.command("set")
def change(
    name: ServerName,
    *,
    effect: Annotated[
        list[str] | None, typer.Option(metavar="TOOL=EFFECT", help="read, idempotent, reconcile or once; others stay.")
    ] = None,
    ask: Annotated[str | None, typer.Option(help="When a person approves calls: always, writes or never.")] = None,
    trusted: Annotated[
        bool | None, typer.Option("--trusted/--no-trusted", help="Believe the server's own hints of effects.")
    ] = None,
    untrusted: Annotated[
        bool | None, typer.Option("--untrusted/--no-untrusted", help="Its results are the words of strangers.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="How long a call may take.")] = None,
    accept_effects: Annotated[
        bool,
        typer.Option(
            "--accept-effects", help="Declare the effects that its own hints propose, where none is declared."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Change settings of a saved server; all others stay, with its secrets."""
    given = {"ask": ask, "trusted": trusted, "untrusted": untrusted, "timeout_s": timeout}
    changes = {field: value for field, value in given.items() if value is not None}
    effects = dict(map(server_config.effect, effect or ()))
    if not changes and not effects and not accept_effects:
        fail("say what is to change, such as --no-untrusted or --effect TOOL=read")
    path = f"/v1/mcp/servers/{name}"
    config = conversation(lambda client: client.get(path), as_json=as_json)["config"]
    if config is None:
        fail(f"{name} is no server that you have saved, so it cannot be changed here")
    params = {"accept_effects": True} if accept_effects else None
    server = conversation(
        lambda client: client.put(path, changed(config, changes, effects), params=params), as_json=as_json
    )
    if as_json:
        print_json(server)
        return
    believed = (
        server_config.STRANGERS if server["config"]["untrusted"] else "its results are not the words of strangers"
    )
    print(f"{name} is changed: {believed}")
    if server.get("advice"):
        print(server["advice"])


def changed(config: dict[str, Any], changes: dict[str, Any], effects: dict[str, str]) -> dict[str, Any]:
    """Return a server's configuration with changes."""
    if changes.get("trusted", config["trusted"]) != config["trusted"]:
        # Shown as it counts, and not whether it was ever set: what follows from `trusted` follows it again.
        changes = {"untrusted": None, **changes}
    return {**config, **changes, "effects": {**config["effects"], **effects}}
