"""What a command is given as JSON: in a file, or on its input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import typer

INPUT = "-"


def json_in(file: str) -> Any:
    """The value in a file, or on the input where it is called `-`; else one line that says what is wrong."""
    try:
        return json.loads(sys.stdin.read() if file == INPUT else Path(file).read_text())
    except OSError as error:
        refuse(f"{file} cannot be read: {error.strerror}")
    except ValueError as error:
        refuse(f"{'the input' if file == INPUT else file} is not JSON: {error}")


def refuse(why: str) -> NoReturn:
    """End the command."""
    print(f"wayline: {why}", file=sys.stderr)
    raise typer.Exit(1) from None
