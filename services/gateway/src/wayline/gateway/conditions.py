"""Conditions of a change: entity tags of configuration, `If-Match` and `If-None-Match`. Pure.

A tag names what was saved and not the figures that are shown beside it: what a budget has spent changes with every job,
and a client that raises its limit has not overwritten anybody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Final, TypeAlias

from fastapi import Depends, Header

from wayline.contracts.errors import Reject, WaylineError
from wayline.gateway.errors import PreconditionFailed

NOT_FOUND: Final = 404
TAGS_MAX: Final = 20
"""In one header."""
HEADER_CHARS_MAX: Final = 2_000
_TAG: Final = re.compile(r'\s*(W/)?("[\x21\x23-\x7e]*")\s*')


def entity_tag(*parts: Any) -> str:
    """Return the strong entity tag of what was saved, given as JSON values."""
    encoded = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return f'"{sha256(encoded.encode()).hexdigest()[:32]}"'


@dataclass(frozen=True, slots=True)
class Precondition:
    """What must hold for a change to be made."""

    tags: tuple[str, ...] | None = None
    """One of these tags is the present one; empty: any that is there. None: whatever there is."""
    only_new: bool = False
    """There is nothing of this name yet."""

    async def check(self, present: Callable[[], Awaitable[str]]) -> None:
        """Raise PreconditionFailed where it does not hold; `present` returns the tag of now, or raises a 404."""
        if self.tags is None and not self.only_new:
            return
        try:
            tag = await present()
        except WaylineError as error:
            if error.status != NOT_FOUND:
                raise
            tag = None
        if self.only_new and tag is not None:
            raise PreconditionFailed("it is there already: leave If-None-Match out to change it", tag=tag)
        if self.tags is not None and tag is None:
            raise PreconditionFailed(
                "it is not there (any more): leave If-Match out to create it", tag=None, asked=self.tags
            )
        if self.tags and tag not in self.tags:
            raise PreconditionFailed(
                "it has changed since it was read: read it again, and change that", tag=tag, asked=self.tags
            )


def read_condition(if_match: str | None, if_none_match: str | None) -> Precondition:
    """Return what the headers of a request ask for. Raises Reject for headers that say nothing."""
    if if_none_match is not None and if_none_match.strip() != "*":
        raise _wrong("If-None-Match", "send `*`, which creates and never replaces")
    return Precondition(tags=None if if_match is None else _tags(if_match), only_new=if_none_match is not None)


def _tags(header: str) -> tuple[str, ...]:
    if header.strip() == "*":
        return ()
    found = [_TAG.fullmatch(part) for part in header.split(",", TAGS_MAX)]
    if not all(found):
        raise _wrong("If-Match", "send the `ETag` of an answer, with its quotation marks, or `*`")
    # A weak tag matches nothing here.
    return tuple(f"{match[1] or ''}{match[2]}" for match in found if match is not None)


def _wrong(header: str, what: str) -> Reject:
    return Reject(f"{header}: {what}", code="invalid_request", status=422)


async def _condition(
    if_match: Annotated[
        str | None,
        Header(
            max_length=HEADER_CHARS_MAX,
            description="The `ETag` that was read: 412 where it has changed since. `*`: any that is there.",
        ),
    ] = None,
    if_none_match: Annotated[
        str | None, Header(max_length=HEADER_CHARS_MAX, description="`*`: 412 where there is one of this name already.")
    ] = None,
) -> Precondition:
    return read_condition(if_match, if_none_match)


IfUnchanged: TypeAlias = Annotated[Precondition, Depends(_condition)]
"""The condition of a request that changes or deletes configuration."""
