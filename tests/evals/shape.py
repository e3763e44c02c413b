"""What shape provider traffic has: which events follow each other, which keys and types objects have."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

CUT_OFF = "CUT OFF"
OPAQUE = frozenset({"input", "parameters", "schema", "input_schema", "metadata", "categories", "arguments"})
"""Keys whose objects are the user's own: their inner keys say nothing about the wire."""


@dataclass
class Shape:
    """Which keys objects have, and which events follow each other.

    An object is known by its path; where it names its `type`, that is part of the path: `.delta<text_delta>`.
    """

    objects: Counter[str] = field(default_factory=Counter)
    keys: Counter[tuple[str, str]] = field(default_factory=Counter)
    types: set[tuple[str, str, str]] = field(default_factory=set)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)

    def hear(self, value: Any, path: str = "") -> None:
        """Add one body or one event."""
        if isinstance(value, list):
            for one in value:
                self.hear(one, f"{path}[]")
        elif isinstance(value, dict):
            if isinstance(value.get("type"), str):
                path = f"{path}<{value['type']}>"
            self.objects[path] += 1
            for key, one in value.items():
                self.keys[path, key] += 1
                self.types.add((path, key, kind(one)))
                if key not in OPAQUE or not isinstance(one, dict):
                    self.hear(one, f"{path}.{key}")

    def hear_stream(self, raw: str) -> None:
        """Add a stream: its events, and their order."""
        before = "START"
        for name, value in events(raw):
            self.pairs[before, name] += 1
            before = name
            if value is not None:
                self.hear(value, f"event {name} ")
        self.pairs[before, "END"] += 1

    def always(self, path: str) -> set[str]:
        """Keys that every object at this path has."""
        return {key for at, key in self.keys if at == path and self.keys[at, key] == self.objects[path]}


def kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return {str: "string", dict: "object", list: "array", type(None): "null"}[type(value)]


def events(raw: str) -> Iterator[tuple[str, Any]]:
    """The events of a stream by name, `chunk` for those without one."""
    for block in raw.replace("\r\n", "\n").split("\n\n"):
        data = "".join(line[5:].strip() for line in block.split("\n") if line.startswith("data:"))
        if data == "[DONE]":
            yield "DONE", None
        elif data:
            try:
                value = json.loads(data)
            except ValueError:
                yield CUT_OFF, None
                continue
            yield value.get("type") or "chunk", value


def shape_of(found: Iterable[tuple[bool, Any]]) -> Shape:
    """The shape of answers: streams as text, others as objects."""
    shape = Shape()
    for streamed, answer in found:
        if streamed:
            shape.hear_stream(answer)
        else:
            shape.hear(answer)
    return shape
