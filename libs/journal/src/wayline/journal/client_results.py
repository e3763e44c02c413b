"""What a job's log says of results that its caller gives for its own tools. Pure."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Self

from wayline.contracts import events as e
from wayline.contracts.errors import Conflict, NotFound, Reject
from wayline.contracts.jobs import ToolResult


class ResultConflict(Conflict):
    """A call has another result already, or has ended without one."""

    code = "result_conflict"

    def __init__(self, key: str, *, ended: bool = False) -> None:
        why = "has ended without a result" if ended else "has another result already: the first one counts"
        super().__init__(f"call {key!r} {why}")


class ClientCalls:
    """The calls of the caller's own tools in a job's log, and how each has ended."""

    def __init__(self) -> None:
        self._tools: frozenset[str] = frozenset()
        self._keys: dict[tuple[int, str], str] = {}
        self._given: dict[str, str | None] = {}

    @classmethod
    async def of(cls, events: AsyncIterable[e.Event]) -> Self:
        """Read a log, of which no more than what is asked of it stays in memory."""
        calls = cls()
        async for event in events:
            calls._add(event)
        return calls

    def _add(self, event: e.Event) -> None:
        if isinstance(event, e.ClientToolsGiven):
            self._tools = frozenset(event.tools)
        elif isinstance(event, e.ToolRequested) and event.expires_at is not None:
            self._keys[event.step, event.call] = event.key
        elif isinstance(event, e.ToolCompleted) and (event.step, event.call) in self._keys:
            self._given[self._keys[event.step, event.call]] = event.given

    @property
    def tools(self) -> frozenset[str]:
        """Return the names of the caller's own tools."""
        return self._tools

    def is_open(self, key: str) -> bool:
        """Return whether the job waits for this call."""
        return key in self._keys.values() and key not in self._given

    def new(self, results: Iterable[ToolResult], *, told: Mapping[str, ToolResult]) -> tuple[ToolResult, ...]:
        """Return the results that nobody has given before; `told`: those on their way to the job, by key.

        Raises NotFound for a call that was never asked for, and ResultConflict for one that has another result or has
        ended without one.
        """
        new, refused = self.sorted_out(results, told=told)
        if refused:
            raise refused[0]
        return new

    def sorted_out(
        self, results: Iterable[ToolResult], *, told: Mapping[str, ToolResult]
    ) -> tuple[tuple[ToolResult, ...], tuple[Reject, ...]]:
        """Return the results that nobody has given before, and why each of those that cannot count does not."""
        new: dict[str, ToolResult] = {}
        refused: list[Reject] = []
        for result in results:
            key, before = result.key, told.get(result.key) or new.get(result.key)
            if key not in self._keys.values():
                refused.append(NotFound("call", key))
            elif key in self._given and self._given[key] != result.digest:
                refused.append(ResultConflict(key, ended=self._given[key] is None))
            elif before is not None and before.digest != result.digest:
                refused.append(ResultConflict(key))
            elif key not in self._given and before is None:
                new[key] = result
        return tuple(new.values()), tuple(refused)
