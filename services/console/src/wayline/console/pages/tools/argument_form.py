"""A form made of a tool's input schema, and the arguments that it sends. Pure: schemas are the words of strangers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from wayline.console.render.json_text import parsed

FIELDS_MAX: Final = 60
"""Of one form: a schema with more is filled in as JSON."""
CHOICES_MAX: Final = 200
DESCRIPTION_MAX_CHARS: Final = 400
PREFIX: Final = "argument:"
"""Before a property's name, in the name of its field."""

Kind: TypeAlias = Literal["text", "lines", "whole", "number", "flag", "choice", "json"]


class WrongArguments(ValueError):
    """What a form sends is no value of the schema's type."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One field of the form."""

    name: str
    kind: Kind
    required: bool = False
    description: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    """Of a choice: each value as JSON, and how it reads."""
    default: str = ""
    """What holds where it is left empty, as JSON."""

    @property
    def field(self) -> str:
        return PREFIX + self.name


def arguments_of(schema: Any) -> tuple[Argument, ...] | None:
    """Return the fields for a schema; None: it is none of an object with named properties, or has too many."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or len(properties) > FIELDS_MAX:
        return None
    required = schema.get("required")
    needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    found = tuple(_argument(str(name), given, str(name) in needed) for name, given in properties.items())
    # Those that a call must have come first; each group as the schema has it.
    return tuple(sorted(found, key=lambda argument: not argument.required))


def _argument(name: str, given: Any, required: bool) -> Argument:
    said = given if isinstance(given, Mapping) else {}
    schema = _without_null(said)
    description = said.get("description")
    kind, choices = _kind(schema)
    return Argument(
        name,
        kind,
        required,
        description[:DESCRIPTION_MAX_CHARS] if isinstance(description, str) else "",
        choices,
        json.dumps(said["default"], ensure_ascii=False)[:DESCRIPTION_MAX_CHARS] if "default" in said else "",
    )


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what else a value may be that may be null; the schema itself where that is not one thing."""
    for word in ("anyOf", "oneOf"):
        ways = schema.get(word)
        if isinstance(ways, list):
            others = [way for way in ways if isinstance(way, Mapping) and way.get("type") != "null"]
            return others[0] if len(others) == 1 else schema
    kind = schema.get("type")
    if isinstance(kind, list):
        others = [one for one in kind if one != "null"]
        return {**schema, "type": others[0] if len(others) == 1 else None}
    return schema


def _kind(schema: Mapping[str, Any]) -> tuple[Kind, tuple[tuple[str, str], ...]]:
    values = schema.get("enum")
    if isinstance(values, list) and 0 < len(values) <= CHOICES_MAX:
        return "choice", tuple((json.dumps(value), _reads(value)) for value in values)
    match schema.get("type"):
        case "string":
            most = schema.get("maxLength")
            return ("text" if isinstance(most, int) and most <= DESCRIPTION_MAX_CHARS else "lines"), ()
        case "integer":
            return "whole", ()
        case "number":
            return "number", ()
        case "boolean":
            return "flag", ()
        case _:
            return "json", ()


def _reads(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= DESCRIPTION_MAX_CHARS else f"{text[:DESCRIPTION_MAX_CHARS]}…"


def read_raw(text: str) -> dict[str, Any]:
    """Read arguments that were written as JSON; empty is none. Raises WrongArguments."""
    value = _parsed(text, "the arguments") if text.strip() else {}
    if not isinstance(value, dict):
        raise WrongArguments('the arguments are no JSON object: write {"name": value, …}')
    return value


def read_fields(arguments: tuple[Argument, ...], sent: Mapping[str, str]) -> dict[str, Any]:
    """Read arguments from the fields of a form; what was left empty is left out. Raises WrongArguments."""
    return {
        argument.name: _value(argument, sent[argument.field])
        for argument in arguments
        if sent.get(argument.field, "") != ""
    }


def _value(argument: Argument, text: str) -> Any:
    if argument.kind in ("text", "lines"):
        return text.replace("\r\n", "\n")
    value = _parsed(text, argument.name)
    if argument.kind == "whole" and (isinstance(value, bool) or not isinstance(value, int)):
        raise WrongArguments(f"{argument.name}: {text!r} is no whole number")
    if argument.kind == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise WrongArguments(f"{argument.name}: {text!r} is no number")
    return value


def _parsed(text: str, name: str) -> Any:
    try:
        return parsed(text)
    except ValueError as error:
        raise WrongArguments(f"{name}: it is no JSON: {error}") from None
