"""An answer that is JSON as tables and lists, and the waves of a plan side by side. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wayline.console.render.json_text import parsed

READ_MAX_CHARS: Final = 200_000
"""A longer answer is shown as it is."""
VALUES_MAX: Final = 2_000
DEPTH_MAX: Final = 8
COLUMNS_MAX: Final = 8
WAVES: Final = "execution_waves"


@dataclass(frozen=True, slots=True)
class Structured:
    """A JSON answer, small enough to be drawn."""

    value: Any

    @property
    def waves(self) -> list[list[str]]:
        """Return the waves of a plan, each with the names of its tasks; none: the answer is no plan."""
        waves = self.value.get(WAVES) if isinstance(self.value, Mapping) else None
        if not isinstance(waves, list) or not all(_is_wave(one) for one in waves):
            return []
        tasks = self.value.get("prioritized_tasks")
        known = [one for one in tasks if isinstance(one, Mapping)] if isinstance(tasks, list) else []
        names = {str(one.get("id")): str(one.get("name") or one.get("id")) for one in known}
        return [[names.get(str(task), str(task)) for task in one["tasks"]] for one in waves]


def _is_wave(one: Any) -> bool:
    return isinstance(one, Mapping) and isinstance(one.get("tasks"), list)


def structured_of(text: Any) -> Structured | None:
    """Return an answer that is a JSON object or array as what is drawn; None: it is none, or too large or deep."""
    if not isinstance(text, str) or len(text) > READ_MAX_CHARS or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = parsed(text)
    except ValueError:
        return None
    return Structured(value) if value and _fits(value) else None


def _fits(value: Any) -> bool:
    left, count = [(value, 1)], 0
    while left:
        one, depth = left.pop()
        count += 1
        if depth > DEPTH_MAX or count > VALUES_MAX:
            return False
        left += [(each, depth + 1) for each in _parts(one)]
    return True


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def columns_of(rows: Any) -> Sequence[str]:
    """Return the columns of a list whose items are objects of plain values; none: it is shown as a list."""
    if not isinstance(rows, list) or len(rows) < 2 or not all(isinstance(row, Mapping) and row for row in rows):
        return ()
    names = list(dict.fromkeys(name for row in rows for name in row))
    is_plain = all(not isinstance(value, dict | list) for row in rows for value in row.values())
    return names if is_plain and len(names) <= COLUMNS_MAX else ()


def plain(value: Any) -> str:
    """Write a plain value as it reads in a table."""
    return {None: "null", True: "yes", False: "no"}[value] if value is None or isinstance(value, bool) else str(value)
