"""Thinking that is bound to what it was thought about: signed with the whole prompt before it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

from wayline.simulator.prompt.blocks import Block
from wayline.simulator.refusals import Refusal

DIGEST_CHARS = 32


def prompt_digest(blocks: Iterable[Block]) -> str:
    """Hash tools, system prompt and messages, without cache markers."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(hashlib.sha256(block.payload).digest())
    return digest.hexdigest()[:DIGEST_CHARS]


def signature(model: str, thought_text: str, before: Iterable[Block]) -> str:
    """Make the signature of a thinking block."""
    return base64.b64encode(f"{model}|{_digest(thought_text)}|{prompt_digest(before)}".encode()).decode()


def belongs(thought_text: str, proof: str, before: Iterable[Block], *, model: str, bound: bool, at: str) -> bool:
    """Return whether thinking that comes back is read: another model's is not. Raises Refusal if it was edited."""
    try:
        owner, thought, prompt = base64.b64decode(proof, validate=True).decode().split("|")
    except ValueError:
        raise Refusal(f"{at}: Invalid `signature` in `thinking` block") from None
    if owner != model:
        return False
    # With `display: omitted` the text never went out, so it need not come back.
    if thought_text and thought != _digest(thought_text):
        raise Refusal(f"{at}: Invalid `signature` in `thinking` block")
    if bound and prompt != prompt_digest(before):
        reason = "The block is bound to a different conversation"
        raise Refusal(f"{at}: Invalid `signature` in `thinking` block. {reason}")
    return True


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]
