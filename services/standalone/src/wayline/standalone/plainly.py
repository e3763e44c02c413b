"""Errors that we raise on purpose end a command with one line, not a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from wayline.contracts.errors import Bug, WaylineError
from wayline.embedded import EmbeddedError
from wayline.store import StoreError

_OURS = (WaylineError, EmbeddedError, StoreError)


@contextmanager
def plainly() -> Iterator[None]:
    """Say what to do and exit with 1; what is a mistake of ours keeps its traceback."""
    try:
        yield
    except BaseExceptionGroup as group:
        first = _first(group)
        if first is None:
            raise
        _end(first)
    except ValidationError as error:
        _end(_explain(error))
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


def _explain(error: ValidationError) -> str:
    return "; ".join(f"WAYLINE_{'_'.join(str(part) for part in e['loc']).upper()}: {e['msg']}" for e in error.errors())


def _end(error: object) -> None:
    print(f"wayline: {error}", file=sys.stderr)
    raise SystemExit(1) from None
