"""What a command is given: text or JSON, in a file or on its input, and numbers."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, NoReturn

import typer

INPUT = "-"


def text_in(file: str) -> str:
    """Return the text of a file, or of the input where it is called `-`; end the command where it cannot be read."""
    name = "the input" if file == INPUT else file
    try:
        # Bytes and not text: what the locale makes of them is no concern of a message's.
        content = sys.stdin.buffer.read() if file == INPUT else Path(file).read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        refuse(f"{name} cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        refuse(f"{name} is not UTF-8 text (byte {error.start}); `wayline run --file` gives a job other files")


def json_in(file: str) -> Any:
    """Return the value in a file, or on the input where it is called `-`; end the command where there is none."""
    text = text_in(file)
    try:
        return json.loads(text)
    except ValueError as error:
        refuse(f"{'the input' if file == INPUT else file} is not JSON: {error}")


def finite(number: float | None) -> float | None:
    """Refuse what is a float and no number, as the callback of an option."""
    if number is not None and not math.isfinite(number):
        raise typer.BadParameter("a finite number is needed")
    return number


def refuse(why: str) -> NoReturn:
    """End the command."""
    print(f"wayline: {why}", file=sys.stderr)
    raise typer.Exit(1) from None
