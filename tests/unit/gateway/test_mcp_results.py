"""A reply of the registry as an MCP client gets it."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import ImageContent, TextContent

from wayline.contracts.chat import ToolImage
from wayline.contracts.tool_details import WholeResult
from wayline.contracts.tools import Effect, InputRequest, ToolDefinition, ToolError, ToolReply
from wayline.gateway.handlers.mcp.results import result_of

TOOL = ToolDefinition(name="bank__pay", server="bank")
TEXT = {"type": "text", "text": "two"}


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


def reply(**fields: object) -> ToolReply:
    return ToolReply.model_validate({"status": "success", "content": "two", "effect": Effect.ONCE, **fields})


def test_a_registry_of_before_is_answered_for_in_words_and_images():
    image = ToolImage(media_type="image/png", sha256="0" * 64, size_bytes=3, width=1, height=1, content_base64="AAAA")

    result = result_of(reply(images=(image,)), TOOL, has_output_schema=True)

    image_block = ImageContent(type="image", data="AAAA", mime_type="image/png")
    assert (result.content, result.is_error) == ([TextContent(type="text", text="two"), image_block], False)


def test_what_a_server_says_in_meta_never_stands_for_ours():
    whole = WholeResult(blocks=(TEXT,), meta={"acme/id": 1, "wayline/effect": "read"})

    result = result_of(reply(whole=whole), TOOL)

    assert result.meta == {"acme/id": 1, "wayline/effect": "once"}


def test_whole_numbers_of_any_size_stay_exact():
    whole = WholeResult(blocks=(TEXT,), structured='{"id": 9400111899223197428490}')

    result = result_of(reply(whole=whole), TOOL, has_output_schema=True)

    assert (result.structured_content, result.is_error) == ({"id": 9400111899223197428490}, False)
    assert b"9400111899223197428490" in result.model_dump_json(by_alias=True).encode()


@pytest.mark.parametrize(("promised", "is_error"), [(True, True), (False, False)])
def test_a_result_without_its_promised_structure_is_an_error(promised: bool, is_error: bool):
    result = result_of(reply(whole=WholeResult(blocks=(TEXT,))), TOOL, has_output_schema=promised)

    assert result.is_error is is_error
    assert (result.meta or {}).get("wayline/error") == ("no_structured_content" if promised else None)


def test_a_failure_is_given_with_its_blocks_and_its_code():
    whole = WholeResult(blocks=(TEXT,), structured='{"n": 1}')
    failed = reply(status="failed", error=ToolError(code="tool_failed", message="two"), whole=whole)

    result = result_of(failed, TOOL)

    assert (result.is_error, result.structured_content) == (True, {"n": 1})
    assert (result.meta or {})["wayline/error"] == "tool_failed"
