"""What an agent that plans tasks is asked: an outcome, and where they are known its documents and its tasks."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator
from pydantic_core import from_json

from wayline.contracts.base import Frozen

TASKS_MAX = 1_000
DOCUMENTS_MAX = 100
INPUT_MAX_CHARS = 4_000_000
"""Of an input that is read as JSON."""
NAME_MAX_CHARS = 300


class PlannedTask(Frozen):
    """A task as a person or a model gives it."""

    id: str = Field(default="", max_length=64, description="Such as `T1`; left out: its number in the list.")
    name: str = Field(min_length=1, max_length=2_000, description="What is to be done, in a few words.")
    text: str = Field(default="", max_length=4_000, description="All else that is said of it, word for word.")
    depends_on: list[str] = Field(default_factory=list, max_length=200, description="Ids of tasks that come before it.")
    priority: float | None = Field(default=None, allow_inf_nan=False, description="1 is the most urgent.")

    @model_validator(mode="before")
    @classmethod
    def _read(cls, given: Any) -> Any:
        """Take a name alone, and the words that others have for a name and a text."""
        if isinstance(given, str):
            return {"name": given}
        if not isinstance(given, dict):
            return given
        read = dict(given)
        for ours, theirs in (("name", "title"), ("text", "description")):
            if ours not in read and theirs in read:
                read[ours] = read[theirs]
        if isinstance(read.get("id"), int):
            read["id"] = str(read["id"])
        return read


class PlanInput(Frozen):
    """The input of an agent that plans tasks."""

    outcome: str = ""
    document_ids: tuple[str, ...] = Field(default=(), max_length=DOCUMENTS_MAX)
    tasks: tuple[PlannedTask, ...] = Field(default=(), max_length=TASKS_MAX)

    @field_validator("document_ids", "tasks", mode="before")
    @classmethod
    def _none_are_none(cls, given: Any) -> Any:
        return () if given is None else given

    @property
    def numbered(self) -> list[PlannedTask]:
        """Return the tasks, each with an id: its number where it has none."""
        return [
            one if one.id.strip() else one.model_copy(update={"id": str(number)})
            for number, one in enumerate(self.tasks, start=1)
        ]


def read_plan_input(text: str) -> PlanInput:
    """Read an input: JSON `{outcome, document_ids?, tasks?}`, else a text that says the outcome."""
    if text.lstrip().startswith("{") and len(text) <= INPUT_MAX_CHARS:
        try:
            return PlanInput.model_validate(from_json(text))
        except ValueError:
            # Half characters are no JSON either, and no text that could be sent on.
            pass
    return PlanInput(outcome=text.strip())
