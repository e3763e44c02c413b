"""Print the steps of `up` on the terminal, each with its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

WIDTH = 58


class StepPrinter:
    """Prints lines on the terminal, and a spinner while a step is under way."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self._began = time.monotonic()

    @contextmanager
    def step(self, doing: str) -> Iterator[PrintedStep]:
        """Show a step under way, then its result and how long it took."""
        step, began = PrintedStep(doing), time.monotonic()
        if self.console.is_terminal:
            with self.console.status(doing, spinner="line"):
                yield step
        else:
            yield step
        self.console.print(f"  {step.done:<{WIDTH}} [dim]{time.monotonic() - began:6.2f} s[/dim]")

    def say(self, text: str) -> None:
        """Print a line."""
        self.console.print(text, soft_wrap=True)

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._began


class PrintedStep:
    """A step under way; `done` is the text of its line at the end."""

    def __init__(self, doing: str) -> None:
        self.done = doing
