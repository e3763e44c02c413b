"""End a command with one line instead of a traceback where the error says what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from wayline.contracts.errors import Bug, WaylineError, WrongSetting
from wayline.embedded import EmbeddedError
from wayline.store import StoreError

_EXPECTED = (WaylineError, EmbeddedError, StoreError)


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Print an expected error and exit with 1, or 2 for a wrong setting; a bug keeps its traceback."""
    try:
        yield
    except BaseExceptionGroup as group:
        first = _first_expected(group)
        if first is None:
            raise
        _end(first)
    except _EXPECTED as error:
        if isinstance(error, Bug):
            raise
        _end(error)


def _first_expected(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """Return the first expected error of a group; the others mostly follow from it."""
    for error in group.exceptions:
        found = _first_expected(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, _EXPECTED) and not isinstance(found, Bug):
            return found
    return None


def _end(error: BaseException) -> None:
    print(f"wayline: {error}", file=sys.stderr)
    raise SystemExit(error.exit_code if isinstance(error, WrongSetting) else 1) from None
