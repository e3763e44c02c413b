"""`wayline completion`: what a shell sources to complete commands and options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

VARIABLE = "_WAYLINE_COMPLETE"
PROGRAM = "wayline"


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell that is to complete.")],
) -> None:
    """Print what completes commands and options: `source <(wayline completion bash)`, or of zsh or fish."""
    from typer.completion import get_completion_script  # pyright: ignore[reportPrivateImportUsage]

    print(get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell))


def answer_shells() -> None:
    """Let the command answer what the printed script asks it."""
    from typer.completion import completion_init  # pyright: ignore[reportPrivateImportUsage]

    completion_init()
