"""Arguments of a call as fields of a form, by its tool's schema, and back: what nobody touched stays. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from wayline.console.render.formats import MARKED
from wayline.console.render.json_text import editable, parsed

FIELDS_MAX: Final = 40
"""Properties of a form; a call with more is edited as JSON."""
TEXT_MAX_CHARS: Final = 20_000
"""A longer text is edited as JSON."""
Kind = Literal["text", "long", "number", "choice", "json"]
KINDS: Final[dict[str, Kind]] = {
    **{"text": "text", "long": "long", "number": "number"},
    **{"choice": "choice", "json": "json"},
}


class NotAValue(ValueError):
    """What was written into a field is no value of its kind."""


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One argument."""

    name: str
    kind: Kind
    value: str
    """As the field shows it; empty: the call has no such argument."""
    description: str = ""
    options: tuple[str, ...] = ()
    is_required: bool = False


def fields_of(schema: Any, arguments: Mapping[str, Any]) -> list[SchemaField]:
    """Return the fields of a call, those that it has and those that it may have; none: it is edited as JSON."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or len({*properties, *arguments}) > FIELDS_MAX:
        return []
    named = {name: properties.get(name) for name in {**properties, **arguments}}
    required = schema.get("required") if isinstance(schema.get("required"), list) else ()
    return [
        _field(name, one if isinstance(one, Mapping) else {}, arguments, is_required=name in required)
        for name, one in named.items()
    ]


def fields_again(kinds: Mapping[str, str], arguments: Mapping[str, Any]) -> list[SchemaField]:
    """Return the fields that a form had, by the kinds that it sends back."""
    found = list[SchemaField]()
    for name, sent in kinds.items():
        kind = KINDS.get(sent)
        if kind is None:
            raise NotAValue(f"{name}: {sent[:20]!r} is no kind of a field")
        plain = kind in ("text", "long")
        value = "" if name not in arguments else str(arguments[name]) if plain else editable(arguments[name])
        found.append(SchemaField(name, kind, value))
    return found


def _field(name: str, schema: Mapping[str, Any], arguments: Mapping[str, Any], *, is_required: bool) -> SchemaField:
    value = arguments.get(name)
    options = _options(schema)
    kind = _kind(schema, value if name in arguments else _ABSENT, options)
    shown = "" if name not in arguments else value if kind in ("text", "long") else editable(value)
    described = schema.get("description")
    return SchemaField(name, kind, str(shown), described if isinstance(described, str) else "", options, is_required)


_ABSENT: Final = object()


def _options(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the values that an argument can have, as JSON."""
    if schema.get("type") == "boolean":
        return ("true", "false")
    choices = schema.get("enum")
    return tuple(map(editable, choices)) if isinstance(choices, list) and len(choices) <= FIELDS_MAX else ()


def _kind(schema: Mapping[str, Any], value: Any, options: tuple[str, ...]) -> Kind:
    if options and (value is _ABSENT or editable(value) in options):
        return "choice"
    if isinstance(value, str) or (value is _ABSENT and schema.get("type") == "string"):
        text = value if isinstance(value, str) else ""
        # A text area changes these, or hides them.
        if len(text) > TEXT_MAX_CHARS or "\r" in text or any(ord(letter) in MARKED for letter in text):
            return "json"
        return "long" if "\n" in text or len(text) > 80 else "text"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number or (value is _ABSENT and schema.get("type") in ("integer", "number")):
        return "number"
    return "json"


def arguments_of(fields: list[SchemaField], written: Mapping[str, str], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a form makes of those that it showed. Raises NotAValue."""
    made = dict(arguments)
    for one in fields:
        text = written.get(one.name)
        if text is None or text.replace("\r\n", "\n") == one.value:
            continue
        if not text and one.name not in arguments:
            continue
        made[one.name] = _value_of(one, text.replace("\r\n", "\n"))
    return made


def _value_of(one: SchemaField, text: str) -> Any:
    if one.kind in ("text", "long"):
        return text
    try:
        value = parsed(text)
    except ValueError:
        raise NotAValue(f"{one.name}: {text[:80]!r} is not JSON") from None
    if one.kind == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise NotAValue(f"{one.name}: {text[:80]!r} is no number")
    return value
