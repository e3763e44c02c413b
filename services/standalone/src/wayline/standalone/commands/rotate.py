"""The commands `wayline rotate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from wayline.standalone.commands.output import AsJson, print_json

app = typer.Typer(
    help="Replace keys and passwords while the services run. Each command does what is due and says what comes next.",
    no_args_is_help=True,
)

Restarted = Annotated[
    bool,
    typer.Option("--restarted", help="Every process was restarted since: ask nobody. What still uses the old is cut."),
]


@app.command()
def nkeys(restarted: Restarted = False, as_json: AsJson = False) -> None:
    """Replace the services' keys on the bus, the administrator's too."""
    _rotate(["nkeys"], restarted=restarted, as_json=as_json)


@app.command()
def passwords(restarted: Restarted = False, as_json: AsJson = False) -> None:
    """Replace the services' passwords in the database, Grafana's too."""
    _rotate(["passwords"], restarted=restarted, as_json=as_json)


@app.command("secret-keys")
def secret_keys(restarted: Restarted = False, as_json: AsJson = False) -> None:
    """Replace the keys that encrypt tenants' secrets, tokens and secrets of webhooks."""
    _rotate(["secret-keys"], restarted=restarted, as_json=as_json)


@app.command("snapshot-keys")
def snapshot_keys(restarted: Restarted = False, as_json: AsJson = False) -> None:
    """Replace the key that signs suspended programs."""
    _rotate(["snapshot-keys"], restarted=restarted, as_json=as_json)


@app.command("all")
def everything(restarted: Restarted = False, as_json: AsJson = False) -> None:
    """Do what is due of each of them."""
    from wayline.standalone.rotation.rotate import EVERYTHING

    _rotate(EVERYTHING, restarted=restarted, as_json=as_json)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show how far each rotation is, and who holds it up."""
    import asyncio

    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.rotation.rotate import status as read
        from wayline.standalone.settings import Settings

        found = asyncio.run(read(Settings()))
    if as_json:
        print_json({"rotations": found})
        return
    from wayline.standalone.commands.output import console
    from wayline.standalone.terminal.table import table

    rows = [(one["what"], one["phase"], one["held_by"] or "-") for one in found]
    console().print(table(["what", "phase", "held by"], rows, nothing="nothing is rotated"), soft_wrap=True)


def _rotate(wanted: Sequence[str], *, restarted: bool, as_json: bool) -> None:
    """Do what is due and print it. Exit code 1: a process or a row still needs the old one."""
    import asyncio
    from dataclasses import asdict
    from functools import partial

    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.rotation.rotate import rotate
        from wayline.standalone.rotation.rotation_step import RotationOutcome
        from wayline.standalone.settings import Settings

        say = partial(typer.echo, err=True)
        done = asyncio.run(rotate(Settings(), wanted, restarted=restarted, say=say))
    if as_json:
        print_json({"rotations": [asdict(one) for one in done]})
    else:
        for one in done:
            print(f"{one.what}: {one.told}" + (f".\n  Next: {one.next}." if one.next else "."))
    if any(one.outcome is RotationOutcome.WAITING for one in done):
        raise typer.Exit(1)
