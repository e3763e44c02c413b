"""Which events of a job are shown: by kind, tool, words, or those that failed. Pure."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from wayline.console.render.addresses import query_of

Word: TypeAlias = Annotated[str, Field(max_length=200)]
FAILED = frozenset({"failed", "skipped", "rejected", "raised", "stopped", "diverged"})
"""How calls and programs say that they did not succeed."""


class EventFilter(BaseModel):
    """Conditions that an event meets, all of them."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)

    kind: Word = ""
    tool: Word = ""
    words: Word = ""
    failed: bool = False

    @property
    def query(self) -> str:
        """Return the conditions as a part of an address."""
        given = {name: value for name, value in self.model_dump().items() if value}
        return query_of({name: "1" if value is True else value for name, value in given.items()})

    def meets(self, event: dict[str, Any]) -> bool:
        """Return whether an event meets all conditions."""
        if self.kind and event["type"] != self.kind:
            return False
        if self.tool and event.get("tool") != self.tool:
            return False
        if self.failed and not has_failed(event):
            return False
        return not self.words or self.words.casefold() in json.dumps(event, ensure_ascii=False).casefold()


def has_failed(event: dict[str, Any]) -> bool:
    """Return whether an event says that something went wrong."""
    return bool(event.get("error")) or event["type"].endswith((".failed", ".rejected")) or event.get("status") in FAILED
