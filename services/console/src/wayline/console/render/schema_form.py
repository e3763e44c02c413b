"""Fields of a form from a JSON Schema, and what the form sends back as a JSON object again. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from wayline.console.render.json_text import finite, parsed

Kind = Literal["switch", "choice", "integer", "number", "amount", "line", "text", "lines", "pairs", "json"]
"""`pairs`: an object of one choice for each name."""
TEXT_FROM_CHARS: Final = 500
"""A text that may be so long has several lines in its form."""
CHOICES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "memory": (("true", "read and write"), ("read", "read only"), ("false", "off")),
}
"""Choices of fields that the schema takes in more than one spelling, as JSON or as a word."""
_ON: Final = ("on", "true")
_NULL: Final = re.compile(r"\b(?:None|null)(?=:)")


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One field of a form, as its schema describes it."""

    name: str
    """Of a nested object with a dot: `routing.mode`."""
    label: str
    help: str
    kind: Kind
    choices: tuple[tuple[str, str], ...] = ()
    least: float | None = None
    most: float | None = None
    max_chars: int | None = None
    nullable: bool = False
    default: Any = None

    @property
    def limits(self) -> str:
        """Return the bounds of a number in words."""
        least, most = (None if bound is None else f"{bound:,.10g}" for bound in (self.least, self.most))
        if least and most:
            return f"{least} to {most}."
        return f"At least {least}." if least else f"At most {most}." if most else ""

    @property
    def said(self) -> str:
        """Return its help with its limits."""
        return " ".join(part for part in (self.help, self.limits) if part)

    def text(self, value: Any) -> str:
        """Return a value as its form shows it."""
        if value is None:
            return ""
        if self.kind == "lines":
            return "\n".join(map(str, value))
        if self.kind == "pairs":
            return "\n".join(f"{name} {chosen}" for name, chosen in value.items())
        if self.kind == "json":
            return "" if value in ({}, []) else json.dumps(value, indent=2, ensure_ascii=False)
        if isinstance(value, bool):
            return "true" if value else "false"
        return f"{value:.10g}" if isinstance(value, float) else str(value)


class WrongField(ValueError):
    """What was typed into a field is not of its kind."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


@dataclass(frozen=True, slots=True)
class ApiSchemas:
    """The schemas of the API's description, by their names."""

    definitions: Mapping[str, Any]

    def fields(self, name: str, *, without: Sequence[str] = ()) -> list[SchemaField]:
        """Return the fields of one schema in its order; those of objects in it stand by themselves."""
        return list(self._fields(self.definitions[name], "", without))

    def _fields(self, schema: Mapping[str, Any], prefix: str, without: Sequence[str]) -> Iterator[SchemaField]:
        for name, given in schema.get("properties", {}).items():
            if name in without:
                continue
            found = self._resolved(given)
            if found.get("type") == "object" and "properties" in found and not _is_nullable(given):
                yield from self._fields(found, f"{prefix}{name}.", ())
            else:
                yield _field(prefix + name, given, [self._resolved(one) for one in _alternatives(given)])

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        reference = schema.get("$ref")
        return self.definitions[reference.rpartition("/")[2]] | schema if reference else schema


def _alternatives(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schemas that a value may be of, without that of null."""
    return [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]


def _is_nullable(schema: Mapping[str, Any]) -> bool:
    return any(one.get("type") == "null" for one in schema.get("anyOf", ()))


def _field(name: str, given: Mapping[str, Any], alternatives: Sequence[Mapping[str, Any]]) -> SchemaField:
    first = alternatives[0] if alternatives else given
    kind, choices = _kind(name, alternatives)
    least = first.get("minimum", first.get("exclusiveMinimum"))
    return SchemaField(
        name=name,
        label=_label(name),
        help=_plain(given.get("description", "")),
        kind=kind,
        choices=choices,
        least=None if kind == "amount" and not least else least,
        most=first.get("maximum", first.get("exclusiveMaximum")) if kind != "amount" else None,
        max_chars=first.get("maxLength"),
        nullable=_is_nullable(given),
        default=given.get("default"),
    )


def _plain(description: str) -> str:
    """Return a description as a form says it: without marks of code, and with what is null left empty."""
    return _NULL.sub("Empty", description.replace("`", ""))


def _label(name: str) -> str:
    words = name.rpartition(".")[2].replace("_", " ")
    return words[:1].upper() + re.sub(r"\busd\b", "in dollars", words[1:])


def _kind(name: str, alternatives: Sequence[Mapping[str, Any]]) -> tuple[Kind, tuple[tuple[str, str], ...]]:
    """Return how a field is filled in, and what can be chosen."""
    if name in CHOICES:
        return "choice", CHOICES[name]
    words = [word for one in alternatives for word in _words(one)]
    types = [one.get("type") for one in alternatives]
    if words:
        switch = ["true", "false"] if "boolean" in types else []
        return "choice", tuple((word, word.replace("_", " ")) for word in (*switch, *words))
    if types == ["boolean"]:
        return "switch", ()
    if types == ["integer"]:
        return "integer", ()
    if types[:1] == ["number"]:
        return ("amount" if "string" in types else "number"), ()
    if types == ["string"]:
        return ("text" if alternatives[0].get("maxLength", 0) >= TEXT_FROM_CHARS else "line"), ()
    if types == ["array"] and alternatives[0].get("items", {}).get("type") == "string":
        return "lines", ()
    values = alternatives[0].get("additionalProperties") if types == ["object"] else None
    words = _words(values) if isinstance(values, Mapping) else []
    return ("pairs", tuple((word, word) for word in words)) if words else ("json", ())


def _words(schema: Mapping[str, Any]) -> list[str]:
    if "const" in schema:
        return [schema["const"]]
    return list(schema.get("enum", ())) if schema.get("type") == "string" else []


def value_of(field: SchemaField, text: str) -> Any:
    """Return what a text of a form stands for. Raises WrongField."""
    text = text.replace("\r\n", "\n")
    if field.kind == "pairs":
        return _pairs(field, text)
    try:
        match field.kind:
            case "switch":
                return text in _ON
            case "choice":
                return {"true": True, "false": False}.get(text, text)
            case "integer":
                return int(text)
            case "number":
                return finite(text)
            case "lines":
                return [line.strip() for line in text.splitlines() if line.strip()]
            case "json":
                return parsed(text)
            case "amount" | "line" | "text":
                return text
    except ValueError:
        kinds = {"integer": "a whole number", "number": "a number", "json": "JSON"}
        raise WrongField(field.name, f"this is not {kinds[field.kind]}") from None


def _pairs(field: SchemaField, text: str) -> dict[str, str]:
    """Return what is chosen for each name, of lines of a name and a choice. Raises WrongField."""
    chosen: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, choice = line.rpartition(" ")
        if not name.strip() or choice not in dict(field.choices):
            words = " or ".join(word for word, _ in field.choices)
            raise WrongField(field.name, f"{line!r} is not a name, a space and {words}")
        chosen[name.strip()] = choice
    return chosen


def put(body: dict[str, Any], name: str, value: Any) -> None:
    """Set a field of an object; a dot leads into an object in it."""
    *path, last = name.split(".")
    for part in path:
        body = body.setdefault(part, {})
    body[last] = value


def pick(body: Mapping[str, Any], name: str) -> Any:
    """Return a field of an object; None: it has none."""
    found: Any = body
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


_PROBLEM = re.compile(r"(?:^|; )body\.([\w.]+): (.*?)(?=; body\.|$)", re.DOTALL)


def problems_by_field(detail: str) -> dict[str, str]:
    """Return what the API says of single fields when it refuses a body."""
    return {match[1]: match[2] for match in _PROBLEM.finditer(detail)}
