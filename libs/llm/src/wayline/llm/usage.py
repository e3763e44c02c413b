"""What providers count, in our own terms: `input` is everything that was read, cached or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wayline.contracts.money import Usage

TOKENS_MAX = 1_000_000_000
"""More than any call reads or writes: a larger count is a mistake, and would be billed as one."""

Counts = Mapping[str, Any]


def from_anthropic(counts: Counts) -> Usage:
    """Read the usage of Messages, whose `input_tokens` leaves out cache reads and writes."""
    read = _count(counts, "cache_read_input_tokens")
    by_ttl = counts.get("cache_creation") or {}
    hour = _count(by_ttl, "ephemeral_1h_input_tokens")
    # The sum, or where it is missing or less than its parts, the parts.
    parts = hour + _count(by_ttl, "ephemeral_5m_input_tokens")
    written = max(_count(counts, "cache_creation_input_tokens"), parts)
    return Usage(
        input=_count(counts, "input_tokens") + read + written,
        cache_read=read,
        cache_write_5m=written - hour,
        cache_write_1h=hour,
        output=_count(counts, "output_tokens"),
        reasoning=_count(counts.get("output_tokens_details") or {}, "thinking_tokens"),
    )


def from_responses(counts: Counts) -> Usage:
    """Read the usage of Responses, whose `input_tokens` includes cached tokens."""
    read = counts.get("input_tokens_details") or {}
    return Usage(
        input=_count(counts, "input_tokens"),
        cache_read=_count(read, "cached_tokens"),
        cache_write_5m=_count(read, "cache_write_tokens"),
        output=_count(counts, "output_tokens"),
        reasoning=_count(counts.get("output_tokens_details") or {}, "reasoning_tokens"),
    )


def from_chat(counts: Counts) -> Usage:
    """Read the usage of Chat Completions, leniently: its endpoints differ."""
    read = counts.get("prompt_tokens_details") or {}
    prompt, written = _count(counts, "prompt_tokens"), _count(counts, "completion_tokens")
    # Some endpoints count what was thought in the sum alone, and bill for it.
    only_in_total = max(_count(counts, "total_tokens") - prompt - written, 0)
    thought = _count(counts.get("completion_tokens_details") or {}, "reasoning_tokens")
    return Usage(
        input=prompt,
        cache_read=_count(read, "cached_tokens"),
        cache_write_5m=_count(read, "cache_write_tokens"),
        output=written + only_in_total,
        reasoning=max(thought, only_in_total),
    )


def _count(counts: Counts, name: str) -> int:
    value = counts.get(name)
    if not isinstance(value, (int, float)) or value <= 0:
        return 0
    if value > TOKENS_MAX:
        raise ValueError(f"{name} is {value}: no call has so many tokens")
    return int(value)
