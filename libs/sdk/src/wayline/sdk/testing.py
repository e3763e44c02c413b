"""Call a service's tools in a test, without a bus: as Wayline would, with the same checks and the same answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from wayline.contracts.bus_tools import InvokeResult as Result
from wayline.contracts.bus_tools import InvokeTool
from wayline.sdk.answers import encoded
from wayline.sdk.call_runner import OutcomeUnknown
from wayline.sdk.tools import Tools

__all__ = ["OutcomeUnknown", "Progress", "ToolBench"]

KEY = "test/job/1/1"


class Progress(NamedTuple):
    """How far a call said that it was."""

    done: float
    total: float | None
    message: str


class ToolBench:
    """Calls the tools of one service in the test's own process.

    bench = ToolBench(tools)
    answer = await bench.call("refund", {"number": "A-1001"})
    assert answer.text == "4200 cents paid back"
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self.progress: list[Progress] = []
        """What calls said of how far they were, in order."""

    async def call(
        self, tool: str, arguments: dict[str, Any] | None = None, *, key: str = KEY, user_id: str | None = None
    ) -> Result:
        """Return the answer to a call, as the bus would take it; `error` says why the tool failed.

        Raises KeyError where there is no such tool, Unavailable where it raised TryLater, OutcomeUnknown where a `once`
        or `reconcile` tool broke off, so that nobody would know what it did, and TimeoutError after its `timeout_s`.
        """
        return await self._invoked(tool, arguments or {}, key, user_id, is_question=False)

    async def outcome(self, tool: str, *, key: str = KEY) -> str | None:
        """Return what a `reconcile` tool says became of a key; None: nothing has begun. Raises what `call` does."""
        answer = await self._invoked(tool, {}, key, None, is_question=True)
        found = answer.structured or {}
        return found["content"] if found.get("found") else None

    def cancel(self, key: str = KEY) -> None:
        """Cancel a call that runs: its `Call.cancelled` is true from now on."""
        self._tools.cancel(key)

    async def _invoked(
        self, tool: str, arguments: dict[str, Any], key: str, user_id: str | None, *, is_question: bool
    ) -> Result:
        offered = self._tools.offered(tool)
        if offered is None:
            raise KeyError(f"{self._tools.service} has no tool {tool!r}")
        invocation = InvokeTool(
            tenant=self._tools.tenant,
            service=self._tools.service,
            tool=tool,
            arguments=arguments,
            key=key,
            job_id="job",
            step=1,
            call="1",
            user_id=user_id,
            timeout_s=offered.timeout_s,
            deadline=datetime.now(UTC) + timedelta(seconds=offered.timeout_s),
            reconcile=is_question,
        )
        answer = await self._tools.invoke(invocation, self._note)
        return Result.model_validate_json(encoded(answer))

    def _note(self, done: float, total: float | None, message: str) -> None:
        self.progress.append(Progress(done, total, message))
