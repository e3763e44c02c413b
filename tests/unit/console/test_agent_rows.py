"""What an agent has several of, as rows of its form: what is pinned, and the fields of its answer."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from wayline.console.pages.agents.answer_schema import form_of
from wayline.console.pages.agents.pinned_rows import parts_of, read_rows
from wayline.console.render.schema_form import WrongField

from ...console_forms import Sent
from .test_agent_form import PAYLOAD, html_of, page

INVOICE: dict[str, Any] = {
    **{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Invoice", "type": "object"},
    "required": ["total", "number"],
    "properties": {
        "number": {"type": "string", "minLength": 3, "description": "As printed,\non its head."},
        "total": {"description": "With tax.", "type": "number", "minimum": 0},
        "state": {"enum": ["open", "paid"]},
        "due": {"type": ["string", "null"], "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5, "description": ""},
        "seller": {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False},
        "lines": {
            "type": "array",
            "items": {
                **{"type": "object", "required": ["price"], "description": "One line."},
                "properties": {"price": {"type": "number"}, "kind": {"type": "string", "enum": ["work", "part"]}},
            },
        },
        "extra": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "additionalProperties": False,
}
ODD: dict[str, Any] = {
    "properties": {
        "a b": {"type": "string", "enum": [], "description": " spaced "},
        "<b>": {"enum": ["<p>", "&amp;"], "description": "\nlower"},
        "size": {"type": "array", "items": {"type": "integer", "enum": [1, 2], "description": "One."}},
        "empty": {"type": "object", "properties": {}, "required": []},
    },
    "type": ["object", "null"],
}
DOCUMENT = {"type": "file", "document_id": "lease", "sha256": "a" * 64}


def sent(**config: Any) -> dict[str, str]:
    return Sent(html_of(page(config), "admin")).fields


def read(fields: dict[str, str]) -> tuple[Any, str]:
    """Return the schema that a form says, and what is wrong with it."""
    config, problems = page({}).around.schema.read(fields.get, ())
    return config.get("output_schema"), problems.get("output_schema", "")


def place(fields: dict[str, str], name: str) -> str:
    """Return what the names of the fields of one row begin with."""
    return next(key for key, value in fields.items() if key.endswith(".name") and value == name).removesuffix("name")


@pytest.mark.parametrize("view", ["table", "json"])
@pytest.mark.parametrize(
    "schema", [INVOICE, ODD, {"type": "object"}, None], ids=["invoice", "odd", "any object", "none"]
)
def test_an_untouched_schema_comes_back_byte_by_byte(schema: Any, view: Any):
    shown = page({"output_schema": schema})
    sections = shown.around.schema.sections({"output_schema": schema}, {}, {"output_schema.next": view}.get)
    fields = Sent(html_of(replace(shown, sections=sections), "admin")).fields

    assert fields["output_schema.view"] == view
    assert json.dumps(read(fields)) == json.dumps([schema, ""])


def test_a_fields_row_changes_its_schema_and_nothing_else():
    fields = sent(output_schema=INVOICE)
    number, total, tags = (place(fields, name) for name in ("number", "total", "tags"))
    fields |= {f"{number}name": "reference", f"{total}kind": "integer", f"{tags}description": "Words to find it by."}
    fields[f"{place(fields, 'state')}choices"] = " open\r\n\r\nlate "
    found, problem = read(fields)

    properties = {
        "reference": INVOICE["properties"]["number"],
        "total": {"type": "integer", "description": "With tax."},
        "state": {"type": "string", "enum": ["open", "late"]},
        "due": INVOICE["properties"]["due"],
        "tags": INVOICE["properties"]["tags"] | {"description": "Words to find it by."},
        **{name: INVOICE["properties"][name] for name in ("seller", "lines", "extra")},
    }
    assert (found, problem) == (INVOICE | {"properties": properties, "required": ["reference", "total"]}, "")
    assert list(found["properties"]) == list(properties)


def test_fields_of_a_field_are_added_and_taken_away():
    fields = sent(output_schema=INVOICE)
    lines = place(fields, "lines")
    fields |= {f"{lines}1.name": "", f"{lines}2.name": "amount", f"{lines}2.kind": "integer"}
    fields |= {f"{lines}2.required": "on", f"{lines}2.list": "on"}
    found, _ = read(fields)

    assert found["properties"]["lines"]["items"] == {
        **{"type": "object", "required": ["price", "amount"], "description": "One line."},
        "properties": {"price": {"type": "number"}, "amount": {"type": "array", "items": {"type": "integer"}}},
    }


def test_fields_of_a_field_go_with_its_kind():
    fields = sent(output_schema=INVOICE)
    lines = place(fields, "lines")
    found, problem = read(fields | {f"{lines}kind": "string", f"{lines}1.name": "price"})

    assert found["properties"]["lines"] == {"type": "array", "items": {"type": "string"}} and problem == ""


def test_a_schema_is_made_of_rows_alone():
    fields = sent()
    first, second = "output_schema.0.", "output_schema.1."
    fields |= {f"{first}name": "mood", f"{first}kind": "choice", f"{first}choices": "good\nbad"}
    fields |= {f"{first}required": "on", f"{first}description": "How it sounds.", f"{first}list": "on"}
    fields |= {
        f"{second}name": "place",
        f"{second}kind": "object",
        f"{second}0.name": "city",
        f"{second}0.kind": "string",
    }
    found, _ = read(fields)

    assert found == {
        "type": "object",
        "properties": {
            "mood": {
                "type": "array",
                "items": {"type": "string", "enum": ["good", "bad"]},
                "description": "How it sounds.",
            },
            "place": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
        "required": ["mood"],
    }
    # The page that is posted once more has rows for the fields of a field.
    assert "output_schema.1.0.name" in sent(output_schema=found)


def test_an_answer_without_fields_is_text_again():
    fields = sent(output_schema={"type": "object", "properties": {"a": {"type": "string"}}})

    assert read(fields | {"output_schema.0.name": ""}) == (None, "")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"8.description": "What?"}, "a field without a name: give it a name"),
        ({"8.name": "total"}, "total: there is a field total already"),
        ({"8.name": "mood", "8.kind": "choice"}, "mood: write the words that it may be, one a line"),
        ({"6.2.name": "price"}, "price: there is a field price already"),
    ],
)
def test_a_wrong_row_is_shown_as_typed_with_its_problem(changes: dict[str, str], problem: str):
    shown = page({"output_schema": INVOICE})
    fields = sent(output_schema=INVOICE) | {f"output_schema.{name}": text for name, text in changes.items()}
    config, problems = shown.around.schema.read(fields.get, ())
    sections = shown.around.schema.sections(config, problems, fields.get)
    html = html_of(replace(shown, sections=sections), "admin")

    assert problems == {"output_schema": problem}
    row = next(iter(changes)).rpartition(".")[0]
    assert unescape(re.findall(rf'id="error-output_schema.{row}">([^<]*)', html)[0]) == problem.partition(": ")[2]
    again = Sent(html).fields
    assert {name: again[f"output_schema.{name}"] for name in changes} == changes
    assert again["output_schema.0.rules"] == "minLength 3"


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "array", "items": {"type": "string"}}, "the answer is a list, and a table is of an object"),
        ({"$ref": "#/$defs/A"}, "the answer is described by $ref, not by a type, and a table is of an object"),
        ({"a": {"anyOf": [{"type": "string"}]}}, "a is described by anyOf, not by a type"),
        ({"a": {"type": ["string", "number"]}}, "a is of more than one type (string, number)"),
        ({"a": {"type": "array", "items": {"type": "array"}}}, "a is a list of no single type"),
        ({"a": {"type": {}}}, "a is of the type {}"),
        ({"a": True}, "a is described by true"),
        ({"a ": {"type": "string"}}, "the name 'a ' has white space that a field of a form does not keep"),
        (
            {"a": {"type": "object", "properties": {"b": {"type": "object"}}}},
            "a.b has fields of its own deeper than a table shows",
        ),
        ({f"f{number}": {"type": "string"} for number in range(61)}, "it has more than 60 fields"),
        ({"type": "object", "required": ["b"]}, "it requires b, of which it says nothing else"),
        (
            {"type": "object", "required": [[]]},
            "its properties or its required fields are not written as JSON Schema has",
        ),
    ],
)
def test_a_schema_that_no_table_shows_is_json_and_says_why(schema: dict[str, Any], why: str):
    is_whole = schema.get("type") in ("array", "object") or "$ref" in schema
    whole = schema if is_whole else {"type": "object", "properties": schema}
    form = form_of(whole)
    html = html_of(page({"output_schema": whole}), "admin")

    assert form.view == "json" and form.not_a_table.startswith(why)
    assert "A table cannot show this schema: " in html
    assert read(Sent(html).fields) == (whole, "")


def test_json_that_cannot_be_read_stays_in_its_field():
    shown = page({})
    fields = {"output_schema.view": "json", "output_schema": '{"type": ', "output_schema.next": "table"}
    config, problems = shown.around.schema.read(fields.get, ())
    html = html_of(replace(shown, sections=shown.around.schema.sections(config, problems, fields.get)), "admin")

    assert problems["output_schema"].startswith("this is not JSON: ")
    assert Sent(html).fields["output_schema"] == '{"type": '


def test_pinned_documents_keep_their_bytes_until_it_is_said():
    fields = sent(pinned=[DOCUMENT, {"type": "text", "text": "Terms.\nAll of them."}])
    untouched = parts_of(read_rows(fields.get) or [])
    renewed = parts_of(read_rows((fields | {"pinned.0.renew": "on"}).get) or [])
    other = parts_of(read_rows((fields | {"pinned.0.document": "rules", "pinned.0.kind": "image"}).get) or [])

    assert untouched == [DOCUMENT, {"type": "text", "text": "Terms.\nAll of them."}]
    assert renewed[0] == {"type": "file", "document_id": "lease"}
    assert other[0] == {"type": "image", "document_id": "rules"}


def test_pinned_rows_are_added_and_left_out():
    fields = sent(pinned=[DOCUMENT]) | {"pinned.0.document": "", "pinned.2.kind": "text", "pinned.2.text": "Be kind."}

    assert parts_of(read_rows(fields.get) or []) == [{"type": "text", "text": "Be kind."}]


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ({"kind": "file", "text": "Terms."}, "write the document's id, or choose text for words of your own"),
        ({"kind": "text", "document": "lease"}, "write the text, or choose document or image for the id of one"),
        ({"kind": "sound", "document": "lease"}, "'sound' is none of file, image, text"),
    ],
)
def test_a_pinned_row_says_what_is_wrong_with_it(typed: dict[str, str], problem: str):
    rows = read_rows({f"pinned.0.{name}": text for name, text in typed.items()}.get)

    assert rows is not None and rows[0].error == problem
    with pytest.raises(WrongField, match="row 1"):
        parts_of(rows)


def test_what_the_api_says_of_a_pinned_part_stands_beside_it():
    shown = page({"pinned": [{"type": "text", "text": "a"}, DOCUMENT]})
    problems = {"pinned.1.file.sha256": "String should match pattern"}
    html = html_of(replace(shown, sections=shown.around.schema.sections({"pinned": [DOCUMENT] * 2}, problems)), "admin")

    assert re.findall(r'id="error-pinned.(\d)">([^<]*)', html) == [("1", "String should match pattern")]


def test_pinned_parts_of_a_newer_kind_stay_json():
    html = html_of(page({"pinned": [{"type": "sound", "document_id": "song"}]}), "admin")

    assert json.loads(Sent(html).fields["pinned"]) == [{"type": "sound", "document_id": "song"}]


def test_strangers_words_change_nothing_of_the_rows():
    def rows(word: str) -> str:
        field = {"type": "string", "description": word, "enum": [word], "title": word}
        pinned = [{"type": "file", "document_id": word}, {"type": "text", "text": word}]
        schema = {"type": "object", "properties": {word: field}}
        return html_of(page({"output_schema": schema, "pinned": pinned}), "admin")

    hostile = PAYLOAD.replace("\u202e", "")
    assert Sent(rows(hostile)).tags == Sent(rows("said")).tags


def test_a_key_that_may_only_read_has_rows_that_are_disabled():
    html = html_of(page({"pinned": [DOCUMENT], "output_schema": INVOICE}))
    rows = re.findall(r"<(?:input|select|textarea)[^>]*(?:pinned|output_schema)\.\d[^>]*>", html)

    assert rows and all(" disabled" in row or 'type="hidden"' in row for row in rows)
