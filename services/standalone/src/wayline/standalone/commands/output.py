"""The output of every command: text for people, or one JSON value and nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from wayline.client import ApiError, Client

AsJson = Annotated[bool, typer.Option("--json", help="Only JSON on the output.")]

WRONG_USAGE = 2
"""The exit code of a wrong command line or a wrong environment variable."""
INTERRUPTED = 130
NOT_TEXT = "an argument is not UTF-8 text: correct it, or send a file"
PIPED_WIDTH = 200


def answer(
    work: Callable[[Client], Awaitable[Any]], *, as_json: bool, draw: Callable[[Any], object] | None = None
) -> Any:
    """Ask the gateway, then print its answer: as JSON, or as `draw` shows it."""
    value = conversation(work, as_json=as_json)
    if as_json:
        print_json(value)
    elif draw is not None:
        console().print(draw(value), soft_wrap=True)
    return value


def conversation(work: Callable[[Client], Awaitable[Any]], *, as_json: bool) -> Any:
    """Ask the gateway; end the command with one line, or one JSON value, when it refuses."""
    import asyncio

    from wayline.client import Address, ApiError, Client, WrongVariable

    async def connected() -> Any:
        async with Client(Address.from_environment()) as client:
            return await work(client)

    try:
        return asyncio.run(connected())
    except ApiError as error:
        _print_error(error, as_json=as_json)
        raise typer.Exit(WRONG_USAGE if isinstance(error, WrongVariable) else 1) from None
    except UnicodeEncodeError:
        _print_error(ApiError(NOT_TEXT, code="not_text"), as_json=as_json)
        raise typer.Exit(WRONG_USAGE) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _print_error(error: ApiError, *, as_json: bool) -> None:
    if as_json:
        print_json({"error": {"code": error.code, "detail": str(error), "status": error.status}})
    else:
        print(f"wayline: {error}", file=sys.stderr)


def write_file(path: str, wanted: dict[str, Any]) -> None:
    """Write a file of the gateway to the output, as it comes."""
    from contextlib import aclosing

    async def work(client: Client) -> None:
        async with aclosing(client.download(path, **wanted)) as pieces:
            async for piece in pieces:
                sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()

    conversation(work, as_json=False)


def print_json(value: Any) -> None:
    """Print a value as one JSON document."""
    print(json.dumps(value, indent=2, ensure_ascii=not speaks_utf8()))


def speaks_utf8() -> bool:
    """Return whether the output can hold every character."""
    return sys.stdout.encoding.lower().replace("-", "") == "utf8"


def console() -> Console:
    """Return the console for people's output."""
    from rich.console import Console

    # Into a file or a pipe nothing is folded to a screen's width.
    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)


def progress_console() -> Console:
    """Return the console for progress: the error stream, because progress is not part of the answer."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)
