"""A reply of the registry as an MCP client gets it."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.contracts.tools import Effect, InputRequest, ToolDefinition, ToolReply
from wayline.gateway.handlers.mcp.results import result_of

TOOL = ToolDefinition(name="bank__pay", server="bank")


@pytest.mark.parametrize(
    ("reply", "code", "words"),
    [
        ({"status": "unknown"}, "unknown", "nobody knows whether"),
        (
            {"status": "success", "input": InputRequest(message="sure?", input_schema={}, keys=("ok",))},
            "needs_input",
            "with run_agent",
        ),
        (
            {
                "status": "failed",
                "input": InputRequest(message="sure?", input_schema={}, keys=("ok",), after_cancel="paid half"),
            },
            "needs_input",
            "Its question was cancelled, and it ended with: 'paid half'",
        ),
    ],
)
def test_what_only_a_person_can_settle_is_an_error(reply: dict[str, Any], code: str, words: str):
    result = result_of(ToolReply(effect=Effect.ONCE, **reply), TOOL)

    assert result.is_error
    assert (result.meta or {})["wayline/error"] == code
    assert words in result.content[0].text  # pyright: ignore[reportAttributeAccessIssue]
