"""Mend what languages and older drafts write into schemas, for which a tool would be left out. Pure."""

from __future__ import annotations

from typing import Any

from wayline.schemas.references import NAMED

_TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
_SAME_TYPE = {
    **dict.fromkeys(("str", "text", "date", "datetime", "uuid", "url", "uri"), "string"),
    **dict.fromkeys(("int", "int32", "int64", "long"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("dict", "map", "struct"), "object"),
    **dict.fromkeys(("list", "tuple"), "array"),
}
_NO_TYPE = frozenset({"any", "mixed"})
_VALUES = frozenset({"const", "default"})
"""Keywords that may be null."""
_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"})


def without_slips(schema: dict[str, Any]) -> dict[str, Any]:
    """Return one schema, without the schemas in it, as its author most likely meant it."""
    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        # Go writes an empty list or map as null.
        if (value is None and keyword not in _VALUES) or _is_wrong_count(keyword, value):
            continue
        # PHP writes an empty map as a list.
        found[keyword] = {} if keyword in NAMED and value == [] else value
    _mend_types(found)
    _mend_required(found)
    return found


def _is_wrong_count(keyword: str, value: Any) -> bool:
    return keyword in _COUNTS and isinstance(value, int | str) and (not isinstance(value, int) or value < 0)


def _mend_types(found: dict[str, Any]) -> None:
    kind = found.get("type")
    kinds = [_type_of(one) for one in (kind if isinstance(kind, list) else [kind])]
    if _NO_TYPE.intersection(one for one in kinds if isinstance(one, str)):
        del found["type"]
    elif kind is not None:
        found["type"] = kinds if isinstance(kind, list) else kinds[0]
    # OpenAPI's word.
    if found.pop("nullable", None) is True and isinstance(found.get("type"), str):
        found["type"] = [found["type"], "null"]
        if isinstance(found.get("enum"), list):
            found["enum"] = [*(value for value in found["enum"] if value is not None), None]


def _type_of(kind: Any) -> Any:
    if not isinstance(kind, str) or kind in _TYPES:
        return kind
    lower = kind.lower()
    return _SAME_TYPE.get(lower, lower if lower in _TYPES | _NO_TYPE else kind)


def _mend_required(found: dict[str, Any]) -> None:
    """Have an object name its required properties, each of which says so itself in the third draft."""
    if isinstance(found.get("required"), bool):
        del found["required"]
    properties = found.get("properties")
    needed = [
        name
        for name, one in (properties.items() if isinstance(properties, dict) else ())
        if isinstance(one, dict) and one.get("required") is True
    ]
    if needed and isinstance(named := found.get("required", []), list):
        found["required"] = [*named, *needed]
