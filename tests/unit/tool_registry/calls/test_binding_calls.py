"""Whether a call may begin: by the definition that its caller judged it by, and by the one that there is now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, cast

import pytest

from wayline.contracts.tools import CallTool, Effect, ToolDefinition, ToolReply
from wayline.telemetry import Telemetry
from wayline.tool_registry.calls.bound_tool import BoundTool
from wayline.tool_registry.calls.ledger import Ledger
from wayline.tool_registry.calls.running_calls import RunningCalls
from wayline.tool_registry.calls.tool_servers import ToolServers
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.tool_catalogue import Tool
from wayline.tool_registry.settings import Settings

SCHEMA = {"type": "object", "properties": {"usd": {"type": "integer"}}}
NOW = ToolDefinition(name="bank__pay", effect=Effect.ONCE, server="bank", input_schema=SCHEMA)
BEFORE = NOW.model_copy(update={"input_schema": {"type": "object", "properties": {"usd": {"const": 1}}}})


class Bank:
    """The servers of a registry that has one tool."""

    missing: ClassVar[dict[str, str]] = {}

    async def find(self, name: str, *, tenant: str) -> Any:
        return Tool(NOW, "pay", (), "pay", trusted=False), self


def call(misfit: str | None, usd: Any = 5) -> CallTool:
    deadline = datetime.now(UTC) + timedelta(seconds=60)
    asked: dict[str, Any] = {"arguments": {"usd": usd}, "misfit": misfit, "deadline": deadline}
    return CallTool(tenant="t", key="t/j/1/1", job_id="j", step=1, call="1", tool=NOW.name, **asked)


async def bound(ask: CallTool, *, to_begin: bool = True) -> BoundTool | ToolReply:
    calls = RunningCalls(
        servers=cast("ToolServers", Bank()),
        ledger=cast("Ledger", None),
        arguments=Arguments(),
        telemetry=Telemetry("test"),
        settings=Settings(),
    )
    return await calls.bind(ask, to_begin=to_begin)


@pytest.mark.parametrize(
    ("misfit", "usd", "code"),
    [
        (BEFORE.digest, 5, "definition_changed"),
        (NOW.digest, "much", "invalid_arguments"),
        # The caller asked nobody, because it found them wrong: they may not turn out to be right.
        (NOW.digest, 5, "invalid_arguments"),
    ],
)
async def test_a_call_that_its_caller_found_wrong_never_begins(misfit: str, usd: Any, code: str):
    refused = await bound(call(misfit, usd))

    assert isinstance(refused, ToolReply) and refused.error is not None
    assert refused.error.code == code


async def test_a_call_that_was_not_found_wrong_begins():
    assert isinstance(await bound(call(None)), BoundTool)


async def test_what_became_of_a_call_found_wrong_is_still_asked():
    assert isinstance(await bound(call(BEFORE.digest), to_begin=False), BoundTool)
