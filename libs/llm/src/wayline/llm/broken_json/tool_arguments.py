"""A model's tool arguments as an object, however badly they are written, and the tool it meant, if there is one."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from wayline.contracts.strict_json import require_bounded
from wayline.llm.broken_json import repair
from wayline.llm.characters import joined, joined_all

UNREADABLE = "_unreadable"
"""The key under which hopeless arguments are handed on: the tool's schema refuses them in words models can read."""
NEAR_MIN = 0.6
"""How alike two tool names must be, of 1, before one is suggested for the other."""
UNREADABLE_MAX_CHARS = 2_000
REFERENCES_MAX = 8
ALTERNATIVES_MAX = 200
"""Parts of a schema in which the types that it accepts are looked for."""
EXACT_MAX = 2**53
"""Below it a float that is whole says the integer exactly."""
TYPE_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number"}
"""What a schema calls the type of a value."""
_BETWEEN = re.compile(r"\}\s*\{")
"""What stands between two objects in a row."""
_BLANKS = re.compile(r"\s*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?")


def read(given: str | dict[str, Any]) -> dict[str, Any]:
    """Read arguments. What a text ends in the middle of is not mended: half a value is a wrong value."""
    if isinstance(given, dict):
        return _exact(given)
    text = joined(given)
    if not text or text.isspace():
        return {}
    if _BETWEEN.search(text) and (objects := _one_after_another(text.strip())):
        if len(objects) > 1:
            # They are two calls, and neither may stand for both.
            return {UNREADABLE: text}
        text = objects[0]
    value = _mended(text)
    if isinstance(value, str) and value != text:
        value = _mended(value)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None and text.strip() == "null":
        return {}
    return value if isinstance(value, dict) else {UNREADABLE: text}


def _one_after_another(text: str) -> list[str]:
    """Return the different objects of a text that is nothing but whole ones, without empty ones; else none."""
    found, at, decoder = dict[str, str](), 0, json.JSONDecoder()
    try:
        while at < len(text):
            value, end = decoder.raw_decode(text, at)
            if not isinstance(value, dict):
                return []
            if value:
                found.setdefault(json.dumps(value, sort_keys=True), text[at:end])
            at = _BLANKS.match(text, end).end()  # pyright: ignore[reportOptionalMemberAccess]
    except (ValueError, RecursionError):
        return []
    return list(found.values())


def unreadable(given: str | dict[str, Any] | None) -> dict[str, Any]:
    """Return arguments that were cut as what no schema takes."""
    return {UNREADABLE: joined(given) if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)}


def _exact(given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that came as an object, where each of their numbers can be handed on."""
    try:
        require_bounded(given)
    except ValueError:
        return unreadable(given)
    return joined_all(given)


def fit(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Mend plainly wrong types where nothing is lost; the schema refuses the rest."""
    return _fit_object(arguments, schema, schema)


def likely_tool(name: str, names: Iterable[str]) -> str | None:
    """Return the tool that an unknown name most likely means: spelled differently, or with a server's prefix."""
    spelled = {_spelling(known): known for known in sorted(names, reverse=True)}
    wanted = _spelling(name)
    if wanted in spelled:
        return spelled[wanted]
    ends = [known for spelling, known in spelled.items() if _same_end(spelling, wanted)]
    if len(ends) == 1:
        return ends[0]
    close = difflib.get_close_matches(wanted, spelled, n=1, cutoff=NEAR_MIN)
    return spelled[close[0]] if close else None


def _spelling(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")


def _same_end(one: str, other: str) -> bool:
    return one.endswith(f"_{other}") or other.endswith(f"_{one}")


def _mended(text: str) -> Any:
    try:
        return repair.repaired(text, whole=True)
    except ValueError:
        return None


def _fit_object(value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    properties = _resolved(schema, root).get("properties")
    if not isinstance(properties, dict):
        return value
    return {key: _fit(item, properties[key], root) if key in properties else item for key, item in value.items()}


def _fit(value: Any, wanted: Any, root: Mapping[str, Any]) -> Any:
    schema = _resolved(wanted, root)
    if schema.get("type") == TYPE_NAMES.get(type(value), ""):
        # Nearly every argument is of the one type that is wanted.
        return value
    kinds = _kinds(schema, root)
    if isinstance(value, str) and kinds and "string" not in kinds:
        value = _from_text(value, kinds)
    elif isinstance(value, float) and _whole(value) and "integer" in kinds and "number" not in kinds:
        value = int(value)
    elif isinstance(value, int) and not isinstance(value, bool) and kinds == {"string"}:
        # Of a fraction the digits that were written are not known any more: 1.10 is 1.1 by now.
        value = str(value)
    if isinstance(value, dict):
        return _fit_object(value, schema, root)
    if isinstance(value, list) and "items" in schema:
        return [_fit(item, schema["items"], root) for item in value]
    return value


def _from_text(text: str, kinds: frozenset[str]) -> Any:
    """Return the value that a string holds if its type is wanted, else the string."""
    stripped = text.strip()
    if stripped.lower() in ("true", "false") and "boolean" in kinds:
        return stripped.lower() == "true"
    if stripped.lower() in ("null", "none", "") and "null" in kinds:
        return None
    if _NUMBER.fullmatch(stripped) and kinds & {"integer", "number"}:
        try:
            number = repair.strict(stripped)
        except ValueError:
            return text
        if isinstance(number, float) and "number" not in kinds:
            return int(number) if _whole(number) else text
        return number
    for kind, opens, closes in (("object", "{", "}"), ("array", "[", "]")):
        if kind in kinds and stripped.startswith(opens) and stripped.endswith(closes):
            value = _mended(stripped)
            return value if isinstance(value, dict if kind == "object" else list) else text
    return text


def _whole(number: float) -> bool:
    return number.is_integer() and abs(number) < EXACT_MAX


def _kinds(schema: Mapping[str, Any], root: Mapping[str, Any]) -> frozenset[str]:
    """Return the types a schema accepts; none where an alternative names no type, or where there are too many."""
    found: set[str] = set()
    waiting, looked_at = [schema], set[int]()
    while waiting:
        one = waiting.pop()
        # Alternatives may refer to themselves, and each to two others: a short schema has more ways than ever end.
        if id(one) in looked_at:
            continue
        looked_at.add(id(one))
        named = one.get("type")
        either = one.get("anyOf") or one.get("oneOf")
        if isinstance(named, str):
            found.add(named)
        elif isinstance(named, list):
            found.update(kind for kind in named if isinstance(kind, str))
        elif isinstance(either, list) and len(looked_at) < ALTERNATIVES_MAX:
            waiting += [_resolved(each, root) for each in either]
        else:
            return frozenset()
    return frozenset(found)


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve a `$ref` within the schema; return an empty schema where it leads nowhere."""
    for _ in range(REFERENCES_MAX):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = root if reference.startswith("#") else {}
        for step in reference[1:].split("/")[1:]:
            schema = schema.get(step) if isinstance(schema, dict) else None
    return {}
