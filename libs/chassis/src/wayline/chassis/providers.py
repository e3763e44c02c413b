"""The condition of a model, shared by all executors: its provider asked to be left alone, keeps failing, or is well.

A plain publish on a key's subject is stored by the bucket PROVIDERS and heard by every subscriber: no watch is needed.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from wayline.chassis.topology import PROVIDERS
from wayline.contracts.ids import RECENT

ALL_MODELS = f"$KV.{PROVIDERS}.>"
BUCKET_STREAM = f"KV_{PROVIDERS}"
HOLD_MAX_S = 3_600.0
"""No state counts for longer, even if its sender's clock is wrong."""


class Condition(StrEnum):
    """The condition of a model, as it travels."""

    HELD = "held"
    """Its provider asked to be left alone."""
    FAILING = "failing"
    WELL = "well"


CLAUSES = {
    Condition.HELD: "asked to be left alone",
    Condition.FAILING: "keeps failing",
    Condition.WELL: "is well",
}
"""The condition in words for people; older builds, without `condition`, send and read these as `why`."""
_BY_CLAUSE = {clause: condition for condition, clause in CLAUSES.items()}


class ProviderState(BaseModel):
    """The value of a model's key."""

    model_config = ConfigDict(frozen=True)

    until: float
    """Seconds since 1970."""
    condition: Condition

    @property
    def clause(self) -> str:
        """Return the condition in words for people."""
        return CLAUSES[self.condition]

    @model_validator(mode="before")
    @classmethod
    def _of_older_builds(cls, value: Any) -> Any:
        if isinstance(value, dict) and "condition" not in value and value.get("why") in _BY_CLAUSE:
            return {**value, "condition": _BY_CLAUSE[value["why"]]}
        return value

    def to_wire(self) -> bytes:
        """Encode the state for this build and for older ones."""
        return json.dumps({"until": self.until, "condition": self.condition, "why": self.clause}).encode()


def read_state(body: bytes) -> ProviderState | None:
    """Return the state in a message's body; None: this build cannot read it."""
    try:
        return ProviderState.model_validate_json(body)
    except ValidationError:
        return None


@lru_cache(RECENT)
def subject(name: str) -> str:
    """Return the subject on which a `provider/model` is stored: `chat/llama 3` is `…chat.llama=203`."""
    provider, _, model = name.partition("/")
    return f"$KV.{PROVIDERS}.{key_token(provider)}.{key_token(model)}"


def key_token(text: str) -> str:
    """Return text as one part of a key: all but letters, digits, `-` and `_` becomes its bytes in hex."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda found: "".join(f"={byte:02x}" for byte in found[0].encode()), text)
