"""Arguments of commands: text or JSON in a file or on the standard input, and numbers."""

from __future__ import annotations

import json
import math
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from wayline.standalone.commands.times import past_time

INPUT = "-"

ServerName = Annotated[str, typer.Argument(help="As `wayline mcp list` shows it.")]


def read_text(file: str) -> str:
    """Return the text of a file, or of the standard input for `-`; end the command when it cannot be read."""
    name = "the input" if file == INPUT else file
    try:
        # Bytes and not text: the locale must not decide how they are decoded.
        content = sys.stdin.buffer.read() if file == INPUT else Path(file).read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        fail(f"{name} cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        fail(f"{name} is not UTF-8 text (byte {error.start}); `wayline run --file` gives a job other files")


def read_json(file: str) -> Any:
    """Return the JSON value of a file, or of the standard input for `-`; end the command when it is not JSON."""
    text = read_text(file)
    try:
        return json.loads(text)
    except ValueError as error:
        fail(f"{'the input' if file == INPUT else file} is not JSON: {error}")


def past_moment(text: str | None, option: str) -> str | None:
    """Return an age such as `7d`, or a date, as a moment; end the command when it is neither."""
    if text is None:
        return None
    try:
        return past_time(text, datetime.now(UTC)).isoformat()
    except ValueError as error:
        fail(f"{option}: {error}")


def on_terminal() -> bool:
    """Return whether a person can answer questions here."""
    return sys.stdin.isatty()


def by_name(option: str, given: list[str] | None) -> dict[str, str]:
    """Return NAME=VALUE arguments by name; end the command where one is none."""
    pairs = [one.partition("=") for one in given or ()]
    if wrong := [name for name, equals, value in pairs if not (name and equals and value)]:
        fail(f"{option} {wrong[0]}: write NAME=VALUE")
    return {name.upper(): value for name, _, value in pairs}


def finite(number: float | None) -> float | None:
    """Refuse `nan` and `inf`, as the callback of an option."""
    if number is not None and not math.isfinite(number):
        raise typer.BadParameter("give a finite number")
    return number


def fail(why: str) -> NoReturn:
    """Print an error and end the command."""
    print(f"wayline: {why}", file=sys.stderr)
    raise typer.Exit(1) from None
