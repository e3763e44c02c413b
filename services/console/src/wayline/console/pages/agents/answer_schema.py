"""The schema of an agent's answer in its form: a table of fields, or JSON where a table cannot show it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from wayline.console.pages.agents.answer_fields import (
    INNER_KINDS,
    KINDS,
    FieldRow,
    NotATable,
    read_rows,
    rows_of,
    schema_of,
    with_room,
)
from wayline.console.render.form_rows import Get
from wayline.console.render.json_text import editable, parsed
from wayline.console.render.schema_form import WrongField

NAME: Final = "output_schema"
VIEW: Final = f"{NAME}.view"
"""The view that the form had when it was sent."""
NEXT_VIEW: Final = f"{NAME}.next"
"""The view that it is to have, of the button that was pressed."""
WAS: Final = f"{NAME}.was"
"""The schema that the table was made of, as JSON; empty: there was none."""

View = Literal["table", "json"]


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What the form shows of the schema."""

    view: View
    rows: Sequence[FieldRow] = ()
    was: str = ""
    text: str = ""
    """The schema as JSON, of that view."""
    not_a_table: str = ""
    """Why it is JSON although a table was wished for."""
    kinds: tuple[tuple[str, str], ...] = KINDS
    inner_kinds: tuple[tuple[str, str], ...] = INNER_KINDS


def form_of(schema: Mapping[str, Any] | None, *, view: View = "table") -> AnswerForm:
    """Return the form of a schema in a view."""
    text = "" if schema is None else editable(schema)
    if view == "json":
        return AnswerForm("json", text=text)
    try:
        return AnswerForm("table", with_room(rows_of(schema) if schema is not None else ()), text)
    except NotATable as error:
        return AnswerForm("json", text=text, not_a_table=str(error))


def next_view(get: Get) -> View:
    """Return the view that a form that was sent is to be shown in."""
    return "json" if (get(NEXT_VIEW) or get(VIEW)) == "json" else "table"


def typed_form(get: Get) -> AnswerForm:
    """Return the form as it was sent, where no schema can be made of it."""
    if get(VIEW) == "json":
        return AnswerForm("json", text=get(NAME) or "")
    return AnswerForm("table", with_room(read_rows(get, NAME)), get(WAS) or "")


def read_schema(get: Get) -> dict[str, Any] | None:
    """Return the schema that a form says; None: the answer is text. Raises WrongField."""
    if get(VIEW) == "json":
        return _object(get(NAME) or "")
    was, rows = _object(get(WAS) or ""), read_rows(get, NAME)
    wrong = next((one for row in rows for one in (row, *row.fields) if one.error), None)
    if wrong:
        raise WrongField(NAME, f"{wrong.name or 'a field without a name'}: {wrong.error}")
    if not rows and (was is None or was.get("properties")):
        return None
    return schema_of(rows, was or {})


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = parsed(text) if text else None
    except ValueError as error:
        raise WrongField(NAME, f"this is not JSON: {error}") from None
    if value is not None and not isinstance(value, dict):
        raise WrongField(NAME, 'this is no JSON object such as {"type": "object"}')
    return value
