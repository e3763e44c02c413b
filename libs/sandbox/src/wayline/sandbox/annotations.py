"""JSON Schema as annotations of Python: narrow where that is sure, `Any` where it is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEPTH_MAX = 6
LITERALS_MAX = 50
"""An enumeration of more values is annotated with their type."""

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_INVARIANT_ITEMS = frozenset({"str", "int", "bool"})


def annotation(value: Any, root: Mapping[str, Any]) -> str:
    """Return the annotation of a value; `root` is where its `$ref`s point into."""
    return _annotation(value, root, DEPTH_MAX, inside=False)


def shape(value: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Return the fields of an object, or of the objects of a list, in one line; empty where there are none."""
    return _shape(value, root, DEPTH_MAX)


def required(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the properties that may not be left out."""
    found = schema.get("required")
    return frozenset(name for name in found if isinstance(name, str)) if isinstance(found, list) else frozenset()


def is_literal(value: Any) -> bool:
    """Return whether a value may stand in a `Literal` and as a default."""
    return isinstance(value, str) or (isinstance(value, int) and abs(value) < 2**63)


def _annotation(value: Any, root: Mapping[str, Any], depth: int, *, inside: bool) -> str:
    found = _resolved(value, root, depth)
    if found is None or depth == 0:
        return "Any"
    for key in ("anyOf", "oneOf"):
        if isinstance(found.get(key), list):
            return _union([_annotation(one, root, depth - 1, inside=inside) for one in found[key]])
    if isinstance(found.get("allOf"), list):
        # All of them hold at once: no annotation says that.
        return _annotation(found["allOf"][0], root, depth - 1, inside=inside) if len(found["allOf"]) == 1 else "Any"
    literals = found.get("enum", [found["const"]] if "const" in found else None)
    # In a list, which is invariant, a literal would refuse every list that was built from texts.
    if isinstance(literals, list) and literals:
        return _literal(literals) if not inside else _union([_type_of(one) for one in literals])
    kind = found.get("type")
    if isinstance(kind, list):
        return _union([_typed(one, found, root, depth) for one in kind])
    return _typed(kind, found, root, depth)


def _typed(kind: Any, value: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind == "array":
        return f"list[{_item(value.get('items'), root, depth)}]"
    if kind == "object":
        others = None if value.get("properties") else value.get("additionalProperties")
        return f"dict[str, {_item(others, root, depth)}]"
    return "Any"


def _item(value: Any, root: Mapping[str, Any], depth: int) -> str:
    """Return the annotation of what a list or a dict holds: both are invariant, so only exact types are safe."""
    found = _annotation(value, root, depth - 1, inside=True)
    nested = found.startswith(("list[", "dict[")) and "|" not in found
    return found if nested or found in _INVARIANT_ITEMS else "Any"


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


def _resolved(value: Any, root: Mapping[str, Any], depth: int) -> Mapping[str, Any] | None:
    """Follow `$ref`s within the schema; None: it says nothing, or points elsewhere."""
    for _ in range(depth + 1):
        if not isinstance(value, dict):
            return None
        reference = value.get("$ref")
        if not isinstance(reference, str):
            return value
        if not reference.startswith("#/"):
            return None
        value = root
        for part in reference[2:].split("/"):
            value = value.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) else None
    return None


def _shape(value: Any, root: Mapping[str, Any], depth: int) -> str:
    found = _resolved(value, root, depth)
    if found is None or depth == 0:
        return ""
    if found.get("type") == "array":
        inner = _shape(found.get("items"), root, depth - 1)
        return f"[{inner}, ...]" if inner else ""
    properties = found.get("properties")
    if not isinstance(properties, dict) or not properties:
        return ""
    needed = required(found)
    fields = (
        f"{name}{'' if name in needed else '?'}: "
        + (_shape(one, root, depth - 1) or _annotation(one, root, depth - 1, inside=False))
        for name, one in properties.items()
    )
    return f"{{{', '.join(fields)}}}"
