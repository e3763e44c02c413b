"""Errors that we raise on purpose end a command with one line, not a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from wayline.contracts.errors import Bug, WaylineError, WrongSetting
from wayline.embedded import EmbeddedError
from wayline.store import StoreError

_OURS = (WaylineError, EmbeddedError, StoreError)


@contextmanager
def plainly() -> Iterator[None]:
    """Say what to do and exit with 1, or 2 where a setting is wrong; what is a mistake of ours keeps its traceback."""
    try:
        yield
    except BaseExceptionGroup as group:
        first = _first(group)
        if first is None:
            raise
        _end(first)
    except _OURS as error:
        if isinstance(error, Bug):
            raise
        _end(error)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """The first error of ours; the others mostly follow from it."""
    for error in group.exceptions:
        found = _first(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, _OURS) and not isinstance(found, Bug):
            return found
    return None


def _end(error: BaseException) -> None:
    print(f"wayline: {error}", file=sys.stderr)
    raise SystemExit(error.exit_code if isinstance(error, WrongSetting) else 1) from None
