"""What executors say of a model to everybody: that its provider asked to be left alone, keeps failing, or is well.

A plain publish on a key's subject is stored by the bucket PROVIDERS and heard by every subscriber: no watch is needed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from wayline.chassis.topology import PROVIDERS
from wayline.contracts.ids import RECENT

ALL_MODELS = f"$KV.{PROVIDERS}.>"
BUCKET_STREAM = f"KV_{PROVIDERS}"
HOLD_MAX_S = 3_600.0
"""No word is believed for longer, whatever the clock of the one who said it."""

Why = Literal["asked to be left alone", "keeps failing", "is well"]


class Word(BaseModel):
    """The value of a model's key."""

    model_config = ConfigDict(frozen=True)

    until: float
    """Seconds since 1970."""
    why: Why


def read_word(body: bytes) -> Word | None:
    """What was said; None: not in words that this build knows."""
    try:
        return Word.model_validate_json(body)
    except ValidationError:
        return None


@lru_cache(RECENT)
def subject(name: str) -> str:
    """The key of a `provider/model` as the subject it is stored on: `chat/llama 3` is `…chat.llama=203`."""
    provider, _, model = name.partition("/")
    return f"$KV.{PROVIDERS}.{_token(provider)}.{_token(model)}"


def _token(text: str) -> str:
    """Text as one part of a key: what is neither a letter, a digit, `-` nor `_` becomes its bytes in hex."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda found: "".join(f"={byte:02x}" for byte in found[0].encode()), text)
