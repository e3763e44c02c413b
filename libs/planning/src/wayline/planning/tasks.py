"""What a plan is made of: tasks, what each needs, and how much of both is looked at."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

TASKS_MAX = 1_000
"""Tasks of one plan."""
DEPENDENCIES_MAX = 2_000
"""Dependencies of one plan; of more the strongest are kept."""
NAME_MAX_CHARS = 300
"""Of a task's name; what is behind is not read."""
TEXT_MAX_CHARS = 4_000
"""Of one task; what is behind is not read."""
TEXTS_MAX_CHARS = 400_000
"""Of all tasks of a plan together; of the tasks behind it only names and numbers are known."""
PASSAGES_MAX = 64
"""Passages beside the tasks in which dependencies are looked for."""
PASSAGE_MAX_CHARS = 8_000
QUOTE_MAX_CHARS = 300
"""Of the sentence that a dependency is shown by."""

Kind = Literal["stated", "reference", "name", "product", "refers_back", "date"]
"""How a dependency was found: given as data; in words with a task's number; with its name; a later task uses what an
earlier one makes; a task speaks of what came before it; one ends before the other begins."""


class TooManyTasks(ValueError):
    """There are more tasks than one plan may have."""

    def __init__(self, count: int) -> None:
        super().__init__(f"a plan has at most {TASKS_MAX} tasks, and these are {count}: split them by goal")


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do."""

    id: str
    name: str
    text: str = ""
    """What else is said of it."""
    depends_on: tuple[str, ...] = ()
    """Ids of tasks that must be done before it, where they were given as data."""
    priority: float | None = None
    """The lower, the earlier among tasks that could be done at once; None: after all that have one."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document, in which sentences may say what depends on what."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Dependency:
    """That a task needs another one done before it, how sure that is, and the words that say so."""

    task: str
    needs: str
    weight: float
    """Between 0 and 1."""
    kind: Kind = "stated"
    quote: str = ""
    source: str = ""
    """The passage that the quote is from; empty: the task itself."""


def require_few(tasks: Collection[Task]) -> None:
    """Raise TooManyTasks where there are more tasks than one plan may have."""
    if len(tasks) > TASKS_MAX:
        raise TooManyTasks(len(tasks))


def distinct(tasks: Collection[Task]) -> dict[str, Task]:
    """Return tasks by id, in their order; of an id that comes twice the first counts; long names are cut."""
    found: dict[str, Task] = {}
    for task in tasks:
        if task.id not in found:
            found[task.id] = (
                task if len(task.name) <= NAME_MAX_CHARS else replace(task, name=task.name[:NAME_MAX_CHARS])
            )
    return found
