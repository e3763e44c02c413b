"""OpenAI's Embeddings: unit vectors that are the same for the same text, and mean nothing."""

from __future__ import annotations

import base64
import hashlib
import math
import struct
from typing import Any

from wayline.simulator.models import Facts
from wayline.simulator.prompt import blocks
from wayline.simulator.refusals import Refusal
from wayline.simulator.request import Body, Envelope
from wayline.simulator.scripts.script import Asked, Turn
from wayline.simulator.wires.replies import Prompt, Reply

INPUTS_MAX = 2_048


def read(body: Body, facts: Facts, envelope: Envelope) -> Prompt:
    """Check a request. Raises Refusal."""
    given = body.get("input")
    inputs = (
        [given]
        if isinstance(given, str) or (isinstance(given, list) and given and isinstance(given[0], int))
        else given
    )
    if not isinstance(inputs, list) or not inputs or len(inputs) > INPUTS_MAX or "" in inputs:
        raise Refusal("'$.input' is invalid. Please check the API reference.", param=None, code=None)
    if (body.get("dimensions") or 1) > (facts.dimensions or 0):
        raise Refusal("This model does not support so many dimensions.", param="dimensions", code="invalid_value")
    if body.get("encoding_format", "float") not in ("float", "base64"):
        raise Refusal("Invalid value for 'encoding_format'.", param="encoding_format", code="invalid_value")
    texts = [text if isinstance(text, str) else repr(text) for text in inputs]
    asked = Asked(
        number=envelope.number,
        attempt=envelope.attempt,
        wire="embeddings",
        model=facts.name,
        body=dict(body),
        turns=tuple(Turn("user", text) for text in texts),
    )
    return Prompt(asked, facts, tuple(blocks.text("messages", "user", text) for text in texts))


def body_of(reply: Reply) -> dict[str, Any]:
    """Return the answer."""
    asked, tokens = reply.prompt.asked, reply.usage.input
    size = asked.body.get("dimensions") or reply.prompt.facts.dimensions or 1
    coded = asked.body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _coded(vector) if coded else vector}
        for index, vector in enumerate(_vector(turn.text, size) for turn in asked.turns)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": asked.model, "usage": usage}


def _vector(text: str, size: int) -> list[float]:
    raw = hashlib.shake_256(text.encode()).digest(size * 4)
    values = [n / 2**31 - 1 for n in struct.unpack(f"<{size}I", raw)]
    length = math.sqrt(sum(value * value for value in values)) or 1.0
    # What base64 carries, so that both encodings say the same.
    return list(struct.unpack(f"<{size}f", struct.pack(f"<{size}f", *(value / length for value in values))))


def _coded(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
