"""A prompt as caches and token counters see it: content blocks in the order tools, system prompt, messages.

Cache markers are no content: two blocks that differ only in them are equal. The order of an object's keys is content.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import orjson

from wayline.simulator.prompt.counting import BLOCK_TOKENS, IMAGE_TOKENS, block_tokens

Section = Literal["tools", "system", "messages"]


@dataclass(frozen=True, slots=True)
class Block:
    """One block: what it is compared by, what it costs, and whether the prefix that it ends is to be kept."""

    section: Section
    kind: str
    head: bytes
    """What it is compared by, beside its text: its place, its role, its ids."""
    text: bytes
    """What is counted."""
    tokens: int
    keep: str | None = None
    """For how long, as the request said it: `5m`, `1h`, `30m`, `12h`."""

    @property
    def payload(self) -> bytes:
        return self.head + self.text

    def kept(self, ttl: str | None) -> Block:
        return replace(self, keep=ttl)


def tool(name: str, description: str, schema: Any) -> Block:
    return _block("tools", "tool", orjson.dumps([name, description, schema]))


def schema(value: Any) -> Block:
    """Make the block of the answer's schema: providers put it before the system prompt."""
    return _block("system", "schema", orjson.dumps(value))


def text(section: Section, role: str, content: str) -> Block:
    return _block(section, "text", content.encode(), role)


def thinking(content: str, proof: str) -> Block:
    return _block("messages", "thinking", content.encode(), proof)


def call(call_id: str, name: str, arguments: str) -> Block:
    """Make the block of a call, counted in compact form: it costs the same in every wire format."""
    try:
        compact = orjson.dumps(orjson.loads(arguments))
    except orjson.JSONDecodeError:
        compact = arguments.encode()
    return _block("messages", "call", name.encode() + compact, call_id, name, arguments)


def result(call_id: str, content: str, failed: bool = False, images: Sequence[tuple[Any, int]] = ()) -> Block:
    """Read a tool's result; of each image its source and what it counts."""
    block = _block("messages", "result", content.encode(), call_id, failed, [source for source, _ in images])
    return replace(block, tokens=block.tokens + sum(tokens for _, tokens in images))


def image(role: str, source: Any, tokens: int = IMAGE_TOKENS) -> Block:
    return replace(_block("messages", "image", b"", role, source), tokens=BLOCK_TOKENS + tokens)


def document(role: str, source: Any, tokens: int) -> Block:
    return replace(_block("messages", "document", b"", role, source), tokens=BLOCK_TOKENS + tokens)


def other(section: Section, role: str, value: Any) -> Block:
    """Make a block of the provider's own, which the simulator does not look into."""
    return _block(section, "other", orjson.dumps(value), role)


def _block(section: Section, kind: str, counted: bytes, *head: Any) -> Block:
    return Block(section, kind, orjson.dumps([section, kind, *head]), counted, block_tokens(counted))
