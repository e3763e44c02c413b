"""The schema of an agent's answer as a table of fields, one level deep, and back.

What the table has no column for stays as it is: rules such as `minLength`, the order of keys, whatever stands beside
the fields. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from wayline.console.render.form_rows import EMPTY_ROWS, Get, SentRow, sent_rows

FIELDS_MAX: Final = 60
"""Of a table; a schema with more is edited as JSON."""
RULE_MAX_CHARS: Final = 60
KINDS: Final = (
    *(("string", "text"), ("choice", "one of some words"), ("integer", "whole number"), ("number", "number")),
    *(("boolean", "yes or no"), ("object", "fields of its own")),
)
INNER_KINDS: Final = tuple(kind for kind in KINDS if kind[0] != "object")
COLUMNS: Final = ("type", "description", "properties", "required", "items")
"""Keywords that have a column; the others of a field are named beside it."""

Schema = Mapping[str, Any]


class NotATable(ValueError):
    """The schema cannot be shown as a table; the message says why."""


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field of the answer, as its row has it."""

    name: str = ""
    kind: str = "string"
    is_list: bool = False
    is_required: bool = False
    description: str = ""
    choices: str = ""
    """The words that it may be, one a line."""
    was: str = ""
    """Its name in the schema that the form was made of; empty: it is new."""
    rules: str = ""
    """What else the schema says of it, which stays."""
    error: str = ""
    fields: tuple[FieldRow, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether the row is left out: an empty one, or one whose name was taken away."""
        written = self.description or self.choices or any(not row.is_empty for row in self.fields)
        return not self.name and (bool(self.was) or not written)

    @property
    def words(self) -> list[str]:
        return [word for line in self.choices.splitlines() if (word := line.strip())]


def rows_of(schema: Schema) -> tuple[FieldRow, ...]:
    """Return the rows of a schema. Raises NotATable."""
    if _types(schema) != ["object"]:
        raise NotATable(f"the answer is {_said_type(schema)}, and a table is of an object")
    rows = _rows_of(schema, "", is_inner=False)
    if sum(1 + len(row.fields) for row in rows) > FIELDS_MAX:
        raise NotATable(f"it has more than {FIELDS_MAX} fields")
    return rows


def _rows_of(schema: Schema, path: str, *, is_inner: bool) -> tuple[FieldRow, ...]:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not _are_texts(required):
        raise NotATable("its properties or its required fields are not written as JSON Schema has them")
    unknown = next((name for name in required if name not in properties), None)
    if unknown is not None:
        raise NotATable(f"it requires {path}{unknown}, of which it says nothing else")
    return tuple(
        _row_of(path, name, one, is_required=name in required, is_inner=is_inner) for name, one in properties.items()
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _row_of(path: str, name: str, schema: Any, *, is_required: bool, is_inner: bool) -> FieldRow:
    place = f"{path}{name}"
    if not isinstance(schema, Mapping):
        raise NotATable(f"{place} is described by {json.dumps(schema)[:RULE_MAX_CHARS]}")
    if not name or name != " ".join(name.split()):
        raise NotATable(f"the name {name!r} has white space that a field of a form does not keep")
    inner = _inner(schema)
    kind = _kind(inner)
    if kind is None:
        raise NotATable(f"{place} is {_said_type(inner, 'a list of no single type')}")
    if kind == "object" and is_inner:
        raise NotATable(f"{place} has fields of its own deeper than a table shows")
    described = schema.get("description", "")
    if not isinstance(described, str) or "\r" in described:
        raise NotATable(f"the description of {place} is no plain text")
    return FieldRow(
        name,
        kind,
        inner is not schema,
        is_required,
        described,
        "\n".join(inner["enum"]) if kind == "choice" else "",
        was=name,
        rules=", ".join(dict.fromkeys((*_rules(schema, kind), *(() if inner is schema else _rules(inner, kind))))),
        fields=_rows_of(inner, f"{place}.", is_inner=True) if kind == "object" else (),
    )


def _inner(schema: Schema) -> Schema:
    """Return what the items of a list are; of anything else the schema itself."""
    items = schema.get("items")
    return items if "array" in _types(schema) and isinstance(items, Mapping) else schema


def _types(schema: Schema) -> list[Any]:
    """Return the types of a value, without null."""
    given = schema.get("type")
    return [one for one in (given if isinstance(given, list) else [given]) if one not in ("null", None)]


def _kind(schema: Schema) -> str | None:
    types, words = _types(schema), schema.get("enum")
    if isinstance(words, list) and words and types in ([], ["string"]) and all(_is_word(word) for word in words):
        return "choice"
    return types[0] if _are_texts(types) and len(types) == 1 and types[0] in dict(KINDS) else None


def _is_word(word: Any) -> bool:
    return isinstance(word, str) and word.splitlines() == [word] and word == word.strip()


def _said_type(schema: Schema, a_list: str = "a list") -> str:
    """Return what a schema describes a value by, in words."""
    types = _types(schema)
    if types == ["array"]:
        return a_list
    if len(types) > 1:
        return f"of more than one type ({', '.join(map(str, types))})"
    if types:
        return f"of the type {str(types[0])[:RULE_MAX_CHARS]}"
    return f"described by {', '.join(list(schema)[:3])}, not by a type" if schema else "anything at all"


def _rules(schema: Schema, kind: str) -> Iterator[str]:
    """Yield what a schema says that no column shows."""
    if isinstance(schema.get("type"), list) and "null" in schema["type"]:
        yield "or null"
    for keyword, value in schema.items():
        if keyword not in COLUMNS and not (keyword == "enum" and kind == "choice"):
            said = json.dumps(value, ensure_ascii=False)
            yield f"{keyword} {said if len(said) <= RULE_MAX_CHARS else '…'}"


def read_rows(get: Get, name: str, *, is_inner: bool = False) -> tuple[FieldRow, ...]:
    """Return the rows that a form sends, those that are filled in, each with what is wrong with it."""
    rows = [_read(sent, is_inner=is_inner) for sent in sent_rows(get, name, by="name")]
    taken = set[str]()
    found = list[FieldRow]()
    for row in rows:
        if row.is_empty:
            continue
        found.append(replace(row, error=_problem(row, taken, INNER_KINDS if is_inner else KINDS)))
        taken.add(row.name)
    return tuple(found)


def _read(sent: SentRow, *, is_inner: bool) -> FieldRow:
    kind = sent.text("kind")
    return FieldRow(
        name=sent.text("name"),
        kind=kind,
        is_list=sent.ticked("list"),
        is_required=sent.ticked("required"),
        description=sent.text("description"),
        choices=sent.text("choices"),
        was=sent.text("was"),
        rules=sent.text("rules"),
        fields=read_rows(sent.get, sent.name, is_inner=True) if kind == "object" and not is_inner else (),
    )


def _problem(row: FieldRow, taken: set[str], kinds: Iterable[tuple[str, str]]) -> str:
    if not row.name:
        return "give it a name"
    if row.name in taken:
        return f"there is a field {row.name} already"
    if row.kind not in dict(kinds):
        return f"{row.kind[:20]!r} is no kind of a field here"
    if row.kind == "choice" and not row.words:
        return "write the words that it may be, one a line"
    return ""


def schema_of(rows: Sequence[FieldRow], was: Schema) -> dict[str, Any]:
    """Return the schema that rows say; `was`: the one that their form was made of."""
    old: Schema = was.get("properties", {})
    properties = {row.name: _property(row, old.get(row.was)) for row in rows}
    required = [row.name for row in rows if row.is_required]
    before: list[str] = was.get("required", [])
    found: dict[str, Any] = dict(was) or {"type": "object"}
    if properties or "properties" in was:
        found["properties"] = properties
    if set(required) != set(before):
        found["required"] = required
    return {name: value for name, value in found.items() if name != "required" or value or not before}


def _property(row: FieldRow, old: Any) -> dict[str, Any]:
    """Return the schema of one field: the old one where the row says nothing else."""
    before: Schema = old if isinstance(old, Mapping) else {}
    inner = _inner(before)
    is_same = bool(before) and _kind(inner) == row.kind
    made = _value(row, inner if is_same else {})
    if not row.is_list:
        found = made
    elif is_same and inner is not before:
        found = {**before, "items": made}
    else:
        made.pop("description", None)
        found = {"type": "array", "items": made}
    return _described(found, row.description, before.get("description", ""))


def _described(schema: dict[str, Any], typed: str, before: str) -> dict[str, Any]:
    """Return a schema with a description; one that was typed as it was shown stays as it was before."""
    wanted = before if typed == before.strip() else typed
    if wanted == schema.get("description", ""):
        return schema
    others = {name: value for name, value in schema.items() if name != "description"}
    return others | ({"description": wanted} if wanted else {})


def _value(row: FieldRow, old: Schema) -> dict[str, Any]:
    """Return the schema of a field's value, or of one item of its list."""
    if row.kind == "object":
        return schema_of(row.fields, old)
    if row.kind != "choice":
        return dict(old) or {"type": row.kind}
    return dict(old) if old.get("enum") == row.words else {"type": "string", **old, "enum": row.words}


def with_room(rows: Sequence[FieldRow]) -> list[FieldRow]:
    """Return rows with empty ones below, also below the fields of a field."""
    roomy = [replace(row, fields=(*row.fields, *_EMPTY)) if row.kind == "object" else row for row in rows]
    return [*roomy, *_EMPTY]


_EMPTY: Final = (FieldRow(),) * EMPTY_ROWS
