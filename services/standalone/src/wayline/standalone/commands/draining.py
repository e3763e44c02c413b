"""The command `wayline drain`."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from wayline.standalone.commands.output import AsJson, answer


def drain(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A replica, as `wayline replicas` names it.")],
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Let it take work again.")] = False,
    finish: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long jobs in hand may go on before others take them over.")
    ] = 600.0,
    as_json: AsJson = False,
) -> None:
    """Have one replica take no more work and finish what it has; it stays so until it is ended or this is undone."""
    path = f"/v1/replicas/{quote(name, safe='')}"
    answer(
        lambda client: client.post(f"{path}/undrain") if undo else client.post(f"{path}/drain", {"finish_s": finish}),
        as_json=as_json,
        draw=_state,
    )


def _state(one: dict[str, Any]) -> str:
    if one["drained_at"] is None:
        return f"{one['name']} takes work"
    left = one["in_hand"]
    return f"{one['name']} is drained, and empty" if not left else f"{one['name']} takes no more work; {left} in hand"
