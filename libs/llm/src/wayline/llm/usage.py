"""What providers count, in our own terms: `input` is everything that was read, cached or not.

A count that cannot be read is unknown, and so is the usage that it is part of: nobody is billed, or not, by a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wayline.contracts.money import Usage

TOKENS_MAX = 1_000_000_000
"""More than any call reads or writes: a larger count is a mistake, and would be billed as one."""

Counts = Mapping[str, Any]


class _Unreadable(Exception):
    """A count is there, and is none."""


def from_anthropic(counts: Any) -> Usage | None:
    """Read the usage of Messages, whose `input_tokens` leaves out cache reads and writes; None: it cannot be read."""
    try:
        read = _count(counts, "cache_read_input_tokens")
        by_ttl = _details(counts, "cache_creation")
        hour = _count(by_ttl, "ephemeral_1h_input_tokens")
        # The sum, or where it is missing or less than its parts, the parts.
        parts = hour + _count(by_ttl, "ephemeral_5m_input_tokens")
        written = max(_count(counts, "cache_creation_input_tokens"), parts)
        return _usage(
            input=_count(counts, "input_tokens") + read + written,
            cache_read=read,
            cache_write_5m=written - hour,
            cache_write_1h=hour,
            output=_told(counts, "output_tokens"),
            reasoning=_count(_details(counts, "output_tokens_details"), "thinking_tokens"),
        )
    except _Unreadable:
        return None


def from_responses(counts: Any) -> Usage | None:
    """Read the usage of Responses, whose `input_tokens` includes cached tokens; None: it cannot be read."""
    try:
        read = _details(counts, "input_tokens_details")
        cached, to_cache = _count(read, "cached_tokens"), _count(read, "cache_write_tokens")
        output = _told(counts, "output_tokens")
        told = _count(counts, "total_tokens") - output
        return _usage(
            input=_all_read(_count(counts, "input_tokens"), cached, to_cache, told=told),
            cache_read=cached,
            cache_write_5m=to_cache,
            output=output,
            reasoning=_count(_details(counts, "output_tokens_details"), "reasoning_tokens"),
        )
    except _Unreadable:
        return None


def from_chat(counts: Any) -> Usage | None:
    """Read the usage of Chat Completions, whose endpoints differ in what they tell; None: it cannot be read."""
    if _has_names(counts) and "prompt_tokens" not in counts and "input_tokens" in counts:
        # By the names of Responses, which it may be made from.
        return from_responses(counts)
    try:
        read = _details(counts, "prompt_tokens_details")
        # In the standard's place, DeepSeek's, or Moonshot's.
        cached = (
            _count(read, "cached_tokens")
            or _count(counts, "prompt_cache_hit_tokens")
            or _count(counts, "cached_tokens")
        )
        prompt, total = _count(counts, "prompt_tokens"), _count(counts, "total_tokens")
        to_cache = _count(read, "cache_write_tokens")
        written = _count(counts, "completion_tokens") if total else _told(counts, "completion_tokens")
        prompt = _all_read(prompt, cached, to_cache, told=total - written)
        # Some endpoints count what was thought in the sum alone, and bill for it.
        only_in_total = max(total - prompt - written, 0)
        thought = _count(_details(counts, "completion_tokens_details"), "reasoning_tokens")
        return _usage(
            input=prompt,
            cache_read=cached,
            cache_write_5m=to_cache,
            output=written + only_in_total,
            reasoning=max(thought, only_in_total),
        )
    except _Unreadable:
        return None


def plausible(usage: Usage | None, *, wrote: bool) -> Usage | None:
    """Return the usage of an answer, or None where it counts nothing of what was written."""
    return None if usage is not None and wrote and not usage.output else usage


def _usage(*, input: int, **counts: int) -> Usage:
    # Every call reads something: an endpoint that says otherwise does not count.
    if not input:
        raise _Unreadable
    cached = sum(counts.get(name, 0) for name in ("cache_read", "cache_write_5m", "cache_write_1h"))
    counts["output"] = _with_parts(counts["output"], counts.get("reasoning", 0))
    return Usage(input=_with_parts(input, cached), **counts)


def _all_read(prompt: int, cached: int, to_cache: int, *, told: int) -> int:
    """Return a prompt with its cached tokens; `told` is what the whole count says of it.

    Tokens that a call wrote to a cache and read from it again are billed for both, and count for both.
    """
    if told == prompt and max(cached, to_cache) <= prompt < cached + to_cache:
        return prompt + min(cached, to_cache)
    return _with_parts(prompt, cached + to_cache)


def _with_parts(whole: int, parts: int) -> int:
    """Return a whole with parts that are more than it is: they were not counted in it."""
    return whole + parts if parts > whole else whole


def _details(counts: Any, name: str) -> Counts:
    """Return the counts within counts; none where there are none."""
    if not _has_names(counts):
        raise _Unreadable
    return counts.get(name) or {}


def _told(counts: Any, name: str) -> int:
    """Return a count that has to be there."""
    if not _has_names(counts) or counts.get(name) is None:
        raise _Unreadable
    return _count(counts, name)


def _has_names(counts: Any) -> bool:
    # A dictionary is nearly always what they are, and an abstract class is asked in Python.
    return type(counts) is dict or isinstance(counts, Mapping)


def _count(counts: Any, name: str) -> int:
    """Return a count, 0 where it is not there."""
    if not _has_names(counts):
        raise _Unreadable
    value = counts.get(name)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= TOKENS_MAX:
        raise _Unreadable
    return int(value)
