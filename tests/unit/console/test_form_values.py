"""What people type into forms: what no JSON can hold is refused beside its field, and never reaches the API."""

from __future__ import annotations

import pytest
from starlette.datastructures import FormData

from wayline.console.access.visitor import field
from wayline.console.pages.form_values import WrongField, number_of, object_of, whole_of
from wayline.console.pages.tools.server_form import ServerForm, WrongServer
from wayline.console.render.schema_form import SchemaField, value_of
from wayline.console.render.schema_form import WrongField as WrongSchemaField


def test_lines_that_were_typed_end_as_they_were_typed():
    assert field(FormData({"input": " one\r\ntwo\r\n"}), "input") == "one\ntwo"


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1e999", "many"])
def test_a_number_that_json_cannot_hold_is_refused(text: str):
    with pytest.raises(WrongField, match="is not a number"):
        number_of(text, what="Weight")
    with pytest.raises(WrongSchemaField, match="not a number"):
        value_of(SchemaField("weight", "", "", "number"), text)
    with pytest.raises(WrongServer, match="no number of seconds"):
        ServerForm(command="x", timeout_s=text).config()


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', '{"a": ' + "[" * 9_000, "{"])
def test_json_that_cannot_be_sent_is_refused(text: str):
    with pytest.raises(WrongField, match="Metadata"):
        object_of(text, what="Metadata")


@pytest.mark.parametrize("text", ["3.7", "1e3", "-1", "²", "1,000", "9" * 10])
def test_a_number_that_is_not_whole_is_refused_and_not_cut(text: str):
    with pytest.raises(WrongField, match="not a whole number"):
        whole_of(text, what="Importance")

    assert (whole_of("0", what=""), whole_of("12", what=""), whole_of("", what="")) == (0, 12, None)
