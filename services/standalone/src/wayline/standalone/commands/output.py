"""How every command answers: text for people, or one JSON value on the output and nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from wayline.standalone.client import Api

AsJson = Annotated[bool, typer.Option("--json", help="Only JSON on the output.")]

INTERRUPTED = 130
PIPED_WIDTH = 200


def answer(work: Callable[[Api], Awaitable[Any]], *, as_json: bool, draw: Callable[[Any], object] | None = None) -> Any:
    """Ask the gateway, then print what it said: as JSON, or as `draw` shows it."""
    said = conversation(work, as_json=as_json)
    if as_json:
        print_json(said)
    elif draw is not None:
        console().print(draw(said), soft_wrap=True)
    return said


def conversation(work: Callable[[Api], Awaitable[Any]], *, as_json: bool) -> Any:
    """Ask the gateway; a refusal ends the command with one line, or one JSON value."""
    from wayline.standalone.client import ApiError, talk

    try:
        return talk(work)
    except ApiError as error:
        if as_json:
            print_json({"error": {"code": error.code, "detail": str(error), "status": error.status}})
        else:
            print(f"wayline: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def print_json(value: Any) -> None:
    """Say an answer as one JSON document."""
    print(json.dumps(value, indent=2, ensure_ascii=not speaks_utf8()))


def speaks_utf8() -> bool:
    """Return whether the output can hold every character."""
    return sys.stdout.encoding.lower().replace("-", "") == "utf8"


def console() -> Console:
    """The output, for people."""
    from rich.console import Console

    # Into a file or a pipe nothing is folded to a screen's width.
    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)


def progress_console() -> Console:
    """What goes on meanwhile: not part of the answer, so not on the output."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)
