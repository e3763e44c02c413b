"""What providers count, in our own terms: `input` is everything that was read, cached or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wayline.contracts.money import Usage

TOKENS_MAX = 1_000_000_000
"""More than any call reads or writes: a larger count is a mistake, and would be billed as one."""

Said = Mapping[str, Any]


def from_anthropic(said: Said) -> Usage:
    """Of Messages: their `input_tokens` leaves out what was read from or written to the cache."""
    read = _count(said, "cache_read_input_tokens")
    by_ttl = said.get("cache_creation") or {}
    hour = _count(by_ttl, "ephemeral_1h_input_tokens")
    # The sum, or where it is missing or less than its parts, the parts.
    parts = hour + _count(by_ttl, "ephemeral_5m_input_tokens")
    written = max(_count(said, "cache_creation_input_tokens"), parts)
    return Usage(
        input=_count(said, "input_tokens") + read + written,
        cache_read=read,
        cache_write_5m=written - hour,
        cache_write_1h=hour,
        output=_count(said, "output_tokens"),
        reasoning=_count(said.get("output_tokens_details") or {}, "thinking_tokens"),
    )


def from_responses(said: Said) -> Usage:
    """Of Responses: their `input_tokens` holds cached tokens already."""
    read = said.get("input_tokens_details") or {}
    return Usage(
        input=_count(said, "input_tokens"),
        cache_read=_count(read, "cached_tokens"),
        cache_write_5m=_count(read, "cache_write_tokens"),
        output=_count(said, "output_tokens"),
        reasoning=_count(said.get("output_tokens_details") or {}, "reasoning_tokens"),
    )


def from_chat(said: Said) -> Usage:
    """Of Chat Completions, as lenient as its many speakers are different."""
    read = said.get("prompt_tokens_details") or {}
    prompt, written = _count(said, "prompt_tokens"), _count(said, "completion_tokens")
    # Some endpoints count what was thought in the sum alone, and bill for it.
    unsaid = max(_count(said, "total_tokens") - prompt - written, 0)
    thought = _count(said.get("completion_tokens_details") or {}, "reasoning_tokens")
    return Usage(
        input=prompt,
        cache_read=_count(read, "cached_tokens"),
        cache_write_5m=_count(read, "cache_write_tokens"),
        output=written + unsaid,
        reasoning=max(thought, unsaid),
    )


def _count(said: Said, name: str) -> int:
    value = said.get(name)
    if not isinstance(value, (int, float)) or value <= 0:
        return 0
    if value > TOKENS_MAX:
        raise ValueError(f"{name} is {value}: no call has so many tokens")
    return int(value)
