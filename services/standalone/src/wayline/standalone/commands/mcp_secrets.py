"""The commands `wayline mcp secrets`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wayline.standalone.commands.arguments import fail, on_terminal
from wayline.standalone.commands.output import AsJson, answer

if TYPE_CHECKING:
    from wayline.client import Client

app = typer.Typer(help="Secrets that servers refer to as ${secret:NAME}; values are never shown.", no_args_is_help=True)

SecretName = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, `_`, `-` and `.`.")]


@app.command()
def put(name: SecretName, as_json: AsJson = False) -> None:
    """Store a secret, or another value of it: asked for on a terminal, else read from the input."""
    if on_terminal():
        value = typer.prompt(f"Value of {name}", hide_input=True)
    else:
        # What `echo` and editors put behind it is no part of a secret.
        value = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    if not value:
        fail("the value is empty: give it on the input, for instance `wayline mcp secrets put NAME < FILE`")
    answer(
        lambda client: client.put(f"/v1/mcp/secrets/{name}", {"value": value}),
        as_json=as_json,
        draw=lambda stored: (
            f"{name} is stored: servers refer to it as ${{secret:{name}}}"
            + (f"; {', '.join(stored['used_by'])} connect anew" if stored["used_by"] else "")
        ),
    )


@app.command("list")
def list_secrets(as_json: AsJson = False) -> None:
    """List the names of the secrets, and the servers that refer to each."""
    from wayline.standalone.terminal.server_views import secrets_table

    answer(lambda client: client.whole("/v1/mcp/secrets", "secrets"), as_json=as_json, draw=secrets_table)


@app.command()
def rotate(as_json: AsJson = False) -> None:
    """Encrypt the secrets of every tenant with the newest key. Exit code 1: some still need another."""

    async def until_done(client: Client) -> dict[str, Any]:
        done = 0
        while True:
            round_ = await client.post("/v1/mcp/secrets/rotate")
            done += round_["encrypted"]
            if not round_["encrypted"] or not round_["left"]:
                return {**round_, "encrypted": done}
            print(f"{done} encrypted, {sum(round_['left'].values())} left", file=sys.stderr)

    found = answer(until_done, as_json=as_json, draw=_rotation)
    if found["left"]:
        raise typer.Exit(1)


def _rotation(found: dict[str, Any]) -> str:
    """Return how far a rotation is, and what to do."""
    if found["newest"] is None:
        return "there is no key, and nothing is encrypted"
    told = f"{found['encrypted']} encrypted with the key {found['newest']}"
    if not found["left"]:
        return f"{told}; nothing needs another key, so older ones can go"
    left = ", ".join(f"{rows} with {key}" for key, rows in found["left"].items())
    missing = f"; no registry has {', '.join(found['unknown'])}" if found["unknown"] else ""
    return (
        f"{told}; left: {left}{missing}. Logins under way end within ten minutes; what is damaged has to be saved anew"
    )


@app.command()
def delete(name: SecretName, as_json: AsJson = False) -> None:
    """Delete a secret that no server refers to."""
    answer(
        lambda client: client.delete(f"/v1/mcp/secrets/{name}"), as_json=as_json, draw=lambda _: f"{name} is deleted"
    )
