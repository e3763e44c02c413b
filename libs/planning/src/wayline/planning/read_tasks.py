"""Tasks that a text lists: numbered lines, bullets and boxes to tick."""

from __future__ import annotations

import re
from collections.abc import Iterable

from wayline.planning.tasks import NAME_MAX_CHARS, PASSAGE_MAX_CHARS, TASKS_MAX, Passage, Task

NAME_MIN_CHARS = 3
_ITEM = re.compile(
    r"^[ \t]{0,8}(?:[-*+•] (?:\[[ xX]\] )?|(?P<number>\d{1,4})[.)] |(?P<id>[A-Z]{1,5}-?\d{1,5})[.:)] )(?P<name>\S.*)$"
)
_OWN_ID = re.compile(r"^(?P<id>[A-Z]{1,5}-?\d{1,5})[.:)]? +(?:[-\u2013] )?(?P<name>\S.*)$")
_MARKS = re.compile(r"[*_`]{1,3}")
_ENDS = re.compile(r"(?<=[.!?;])\s|\s[(\u2013\u2014-]\s?")


def read_tasks(passages: Iterable[Passage]) -> list[Task]:
    """Return the tasks that passages list, each once, at most TASKS_MAX; a line without a number is given one."""
    found: dict[str, Task] = {}
    names: set[str] = set()
    for passage in passages:
        for line in passage.text[:PASSAGE_MAX_CHARS].splitlines():
            item = _ITEM.match(line[: 4 * NAME_MAX_CHARS])
            if item is None or len(found) >= TASKS_MAX:
                continue
            told, text = item["id"] or item["number"], _MARKS.sub("", item["name"]).strip()
            own = _OWN_ID.match(text)
            if own is not None:
                told, text = own["id"], own["name"]
            name = _ENDS.split(text, maxsplit=1)[0].strip(" .;:,")[:NAME_MAX_CHARS]
            if len(name) < NAME_MIN_CHARS or name.casefold() in names:
                continue
            names.add(name.casefold())
            one = told if told and told not in found else _free(found)
            found[one] = Task(one, name, text if text != name else "")
    return list(found.values())


def _free(found: dict[str, Task]) -> str:
    number = len(found) + 1
    while str(number) in found:
        number += 1
    return str(number)
