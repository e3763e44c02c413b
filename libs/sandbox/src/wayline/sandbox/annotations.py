"""JSON Schema as annotations of Python: narrow where that is sure, `Any` where it is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEPTH_MAX = 6
PARTS_MAX = 1_000
"""Of a schema, for one annotation: each part may refer to all others, so depth alone bounds nothing."""
LITERALS_MAX = 50
"""An enumeration of more values is annotated with their type."""

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_INVARIANT_ITEMS = frozenset({"str", "int", "bool"})


def annotation(value: Any, root: Mapping[str, Any]) -> str:
    """Return the annotation of a value; `root` is where its `$ref`s point into."""
    return _Writer(root).annotation(value, DEPTH_MAX, inside=False)


def shape(value: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Return the fields of an object, or of the objects of a list, in one line; empty where there are none."""
    return _Writer(root).shape(value, DEPTH_MAX)


def required(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the properties that may not be left out."""
    found = schema.get("required")
    return frozenset(name for name in found if isinstance(name, str)) if isinstance(found, list) else frozenset()


def is_literal(value: Any) -> bool:
    """Return whether a value may stand in a `Literal` and as a default."""
    return isinstance(value, str) or (isinstance(value, int) and abs(value) < 2**63)


class _Writer:
    """Writes annotations of the parts of one schema, of no more of them than it may."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._parts_left = PARTS_MAX

    def annotation(self, value: Any, depth: int, *, inside: bool) -> str:
        """Return the annotation of a part; `inside`: of what a list or a dict holds."""
        found = self._resolved(value, depth)
        if found is None:
            return "Any"
        for key in ("anyOf", "oneOf"):
            if isinstance(found.get(key), list):
                return _union([self.annotation(one, depth - 1, inside=inside) for one in found[key]])
        if isinstance(found.get("allOf"), list):
            # All of them hold at once: no annotation says that.
            return self.annotation(found["allOf"][0], depth - 1, inside=inside) if len(found["allOf"]) == 1 else "Any"
        literals = found.get("enum", [found["const"]] if "const" in found else None)
        # In a list, which is invariant, a literal would refuse every list that was built from texts.
        if isinstance(literals, list) and literals:
            return _literal(literals) if not inside else _union([_type_of(one) for one in literals])
        kind = found.get("type")
        if isinstance(kind, list):
            return _union([self._typed(one, found, depth) for one in kind])
        return self._typed(kind, found, depth)

    def shape(self, value: Any, depth: int) -> str:
        """Return the fields of a part in one line; empty where there are none."""
        found = self._resolved(value, depth)
        if found is None:
            return ""
        if found.get("type") == "array":
            inner = self.shape(found.get("items"), depth - 1)
            return f"[{inner}, ...]" if inner else ""
        properties = found.get("properties")
        if not isinstance(properties, dict) or not properties:
            return ""
        needed = required(found)
        fields = (
            f"{name}{'' if name in needed else '?'}: "
            + (self.shape(one, depth - 1) or self.annotation(one, depth - 1, inside=False))
            for name, one in properties.items()
        )
        return f"{{{', '.join(fields)}}}"

    def _typed(self, kind: Any, value: Mapping[str, Any], depth: int) -> str:
        if kind in _SCALARS:
            return _SCALARS[kind]
        if kind == "array":
            return f"list[{self._item(value.get('items'), depth)}]"
        if kind == "object":
            others = None if value.get("properties") else value.get("additionalProperties")
            return f"dict[str, {self._item(others, depth)}]"
        return "Any"

    def _item(self, value: Any, depth: int) -> str:
        """Return the annotation of what a list or a dict holds: both are invariant, so only exact types are safe."""
        found = self.annotation(value, depth - 1, inside=True)
        nested = found.startswith(("list[", "dict[")) and "|" not in found
        return found if nested or found in _INVARIANT_ITEMS else "Any"

    def _resolved(self, value: Any, depth: int) -> Mapping[str, Any] | None:
        """Follow `$ref`s within the schema; None: it says nothing, points elsewhere, or is too deep or one too many."""
        self._parts_left -= 1
        if depth == 0 or self._parts_left < 0:
            return None
        for _ in range(depth + 1):
            if not isinstance(value, dict):
                return None
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            if not reference.startswith("#/"):
                return None
            value = self._root
            for part in reference[2:].split("/"):
                value = value.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) else None
        return None


def _literal(values: list[Any]) -> str:
    if len(values) > LITERALS_MAX or not all(one is None or is_literal(one) for one in values):
        return _union([_type_of(one) for one in values])
    return f"Literal[{', '.join(repr(one) for one in values)}]"


def _type_of(value: Any) -> str:
    if value is None:
        return "None"
    return next((kind.__name__ for kind in (bool, int, float, str) if isinstance(value, kind)), "Any")


def _union(parts: list[str]) -> str:
    unique = list(dict.fromkeys(parts))
    if "Any" in unique or not unique:
        return "Any"
    if "None" in unique and len(unique) > 1:
        return f"Optional[{' | '.join(part for part in unique if part != 'None')}]"
    return " | ".join(unique)
