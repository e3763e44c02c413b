"""Compare the definitions that a server offers, by fingerprint, with those that were approved or wait for a person."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from wayline.tool_registry.definitions.visible_text import visible
from wayline.tool_registry.errors import TooMuchOffered

INSTRUCTIONS = ""
"""The name of a server's instructions beside those of its tools."""
NAME_CHARS_MAX = 256
TOOLS_MAX = 2_000
DEFINITIONS_MAX_BYTES = 16 * 1024 * 1024
"""Of all tools of one server."""

CHANGED = "its definition has changed since it was approved"
NEW = "it is new on a server that was approved without it"
OTHER_INSTRUCTIONS = "the instructions of its server have changed since they were approved"


@dataclass(frozen=True)
class Definition:
    """A tool as its server describes it, or the server's instructions."""

    name: str
    sha256: str
    """Of the raw object, the order of its keys aside."""
    text: str = field(repr=False)
    """The object as JSON, without the server's secrets."""

    @property
    def schema(self) -> dict[str, Any]:
        """Return the schema of a tool's arguments."""
        return schema_of(self.text)


@dataclass(frozen=True)
class Pins:
    """The approved and the waiting fingerprints of one server, by name."""

    begun: bool
    """Whether the server was ever reached."""
    approved: Mapping[str, str]
    waiting: Mapping[str, str]
    shown: str | None = None
    """The hash of what was shown to the person who saved the server; None: nothing was."""


@dataclass(frozen=True)
class PinnedTool:
    """A tool as it was approved and as it waits, by fingerprints."""

    name: str
    approved: str | None
    waiting: str | None
    text: str | None = field(repr=False)
    """The definition that waits."""

    @property
    def schema(self) -> dict[str, Any]:
        """Return the schema of the definition that waits."""
        return schema_of(self.text or "{}")


@dataclass(frozen=True)
class PinnedAway:
    """A tool that was pinned and cannot be called now."""

    server: str
    name: str
    text: str | None = field(repr=False)
    """The approved definition, else the one that waits; None: it is too long to be read for a search."""
    enabled: bool
    """Whether its server is."""
    waits: bool
    """Whether its own definition waits for approval, and not just its server's instructions."""


@dataclass(frozen=True)
class Review:
    """What becomes of the definitions that a server offers."""

    withheld: dict[str, str]
    """Why each tool that must not be used may not be, by name; with the instructions, where they are others."""
    hold: tuple[Definition, ...]
    """Those that have to be shown to a person, and are not yet."""
    release: tuple[str, ...]
    """Names of those that wait for nothing any more."""


def definition_of(raw: Mapping[str, Any], *, shown: Mapping[str, Any]) -> Definition:
    """Return a tool's definition; `shown` is `raw` without the server's secrets."""
    return Definition(str(raw.get("name", "")), fingerprint(raw), canonical(shown))


def instructions_of(text: str | None, *, shown: str | None) -> Definition:
    """Return a server's instructions as a definition."""
    return Definition(INSTRUCTIONS, fingerprint({"instructions": text or ""}), canonical({"instructions": shown or ""}))


def fingerprint_of_all(offered: Iterable[Definition]) -> str:
    """Return the hash of all that a server offers, in any order."""
    return fingerprint({one.name: one.sha256 for one in offered})


def fingerprint(value: Mapping[str, Any]) -> str:
    """Return the hash of an object from the wire; only the order of keys does not count."""
    return sha256(canonical(value).encode()).hexdigest()


def canonical(value: Any) -> str:
    """Return JSON that is the same for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def schema_of(definition: str) -> dict[str, Any]:
    """Return the schema of arguments in a tool's definition; without one, what takes anything."""
    schema = json.loads(definition).get("inputSchema")
    return schema if isinstance(schema, dict) else {}


def can_be_kept(name: str) -> bool:
    """Return whether a tool's name can be a key of ours."""
    is_text = not any("\ud800" <= char <= "\udfff" for char in name)
    return 0 < len(name) <= NAME_CHARS_MAX and "\0" not in name and is_text


def require_moderate(offered: Iterable[Definition]) -> None:
    """Refuse more than is kept for one server. Raises TooMuchOffered."""
    tools, size = 0, 0
    for one in offered:
        tools, size = tools + (one.name != INSTRUCTIONS), size + len(one.text)
    if tools > TOOLS_MAX:
        raise TooMuchOffered(f"it offers {tools} tools, and at most {TOOLS_MAX} are taken")
    if size > DEFINITIONS_MAX_BYTES:
        raise TooMuchOffered(f"the definitions of its tools take more than {DEFINITIONS_MAX_BYTES} bytes")


def review(offered: Iterable[Definition], pins: Pins) -> Review:
    """Compare what a server offers with what was approved."""
    by_name = {one.name: one for one in reversed(list(offered))}
    differs = {name: one for name, one in by_name.items() if pins.approved.get(name) != one.sha256}
    withheld = {name: CHANGED if name in pins.approved else NEW for name in differs if name != INSTRUCTIONS}
    if INSTRUCTIONS in differs:
        # They speak to the model about every tool of the server.
        withheld = dict.fromkeys(by_name, OTHER_INSTRUCTIONS) | withheld
    return Review(
        withheld=withheld,
        hold=tuple(one for name, one in differs.items() if pins.waiting.get(name) != one.sha256),
        release=tuple(name for name in pins.waiting if name not in differs),
    )


@dataclass(frozen=True)
class Difference:
    """One place where two definitions differ; the values are JSON with hidden characters escaped."""

    path: str
    before: str | None
    after: str | None


def differences(before: str | None, after: str) -> list[Difference]:
    """Return where two definitions differ; without a first one, all that the second one holds."""
    return list(_compared({} if before is None else json.loads(before), json.loads(after), ""))


def _compared(before: Any, after: Any, path: str) -> Iterable[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            at = f"{path}/{visible(key.replace('~', '~0').replace('/', '~1'))}"
            if key not in after:
                yield Difference(at, _shown(before[key]), None)
            elif key not in before:
                yield Difference(at, None, _shown(after[key]))
            else:
                yield from _compared(before[key], after[key], at)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _compared(one, other, f"{path}/{index}")
    elif canonical(before) != canonical(after):
        yield Difference(path, _shown(before), _shown(after))


def _shown(value: Any) -> str:
    return visible(json.dumps(value, ensure_ascii=False, sort_keys=True))
