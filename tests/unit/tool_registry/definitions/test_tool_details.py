"""What MCP clients are told of a tool beside its definition."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import Tool

from wayline.contracts.tool_details import ToolDetails
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.tool_details import OUTPUT_SCHEMA_MAX_BYTES, tool_details

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "description": "How many.\u202e"}}}


def details(*, trusted: bool = False, **fields: Any) -> ToolDetails | None:
    tool = Tool.model_validate({"name": "pay", "inputSchema": {"type": "object"}, **fields}, by_name=False)
    return tool_details(tool, Arguments(), trusted=trusted)


def test_title_schema_and_meta_are_passed_on_without_hidden_characters():
    found = details(title="Pay\u202e an  order", outputSchema=SCHEMA, _meta={"acme/id": 1, "wayline/effect": "read"})

    shown = {"type": "object", "properties": {"n": {"type": "integer", "description": "How many."}}}
    assert found == ToolDetails(title="Pay an order", output_schema=shown, meta={"acme/id": 1})


def test_a_title_among_the_annotations_counts():
    assert details(annotations={"title": "Pay"}) == ToolDetails(title="Pay")


@pytest.mark.parametrize(
    "schema", [{"type": 7}, {"type": "object", "description": "x" * OUTPUT_SCHEMA_MAX_BYTES}], ids=["wrong", "long"]
)
def test_an_output_schema_that_cannot_be_used_is_left_away(schema: dict[str, Any]):
    assert details(outputSchema=schema) is None


@pytest.mark.parametrize(
    ("hints", "trusted", "destructive"),
    [
        ({"destructiveHint": True}, False, True),
        ({"destructiveHint": False}, False, None),
        ({"destructiveHint": False}, True, False),
    ],
)
def test_a_hint_that_calms_counts_from_a_trusted_server_only(hints: Any, trusted: bool, destructive: bool | None):
    found = details(annotations=hints, trusted=trusted) or ToolDetails()

    assert found.destructive is destructive
