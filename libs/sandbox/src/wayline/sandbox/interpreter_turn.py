"""One turn of a program in the interpreter: answers go in, calls come out, nothing else gets through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import pydantic_monty as monty

from wayline.sandbox.errors import Diverged
from wayline.sandbox.json_values import NotJson, argument_values, readable_value
from wayline.sandbox.limits import MESSAGE_CHARS_MAX, Limits
from wayline.sandbox.program import Answer, Completed, Failed, Program, ProgramCall, Returned, Suspended, Turn

_LATER: monty.ExternalFuture = {"future": ...}
_OUT_OF_TIME = "feed time limit exceeded"
"""What the interpreter says where a program has computed for as long as it may."""
_TOO_MANY: monty.ExternalException = {"exception": RuntimeError()}


class InterpreterTurn:
    """What a turn has come to so far."""

    def __init__(self, program: Program, limits: Limits, before: Suspended | None = None) -> None:
        self._program = program
        self._limits = limits
        self._before = before
        self._asked = before.asked if before else 0
        self._pending = {call.number: call for call in before.pending} if before else {}
        self._handles = dict(before.handles) if before else {}
        self._new: set[int] = set()
        """Calls of this turn: nobody has heard of them yet."""
        self._printed = before.printed if before else ""
        self._room = max(0, limits.printed_bytes_max - len(self._printed.encode()))
        self._printing = monty.CollectString(self._room)

    async def start(self, session: monty.AsyncMontySession) -> Turn:
        """Check and run a program from its beginning."""
        return await self._run(await session.feed_start(self._program.code, print_callback=self._printing))

    async def resume(self, session: monty.AsyncMontySession, answers: Sequence[tuple[int, Answer]]) -> Turn:
        """Go on from a suspension with these answers."""
        assert self._before is not None
        snapshot = await session.load_snapshot(self._before.dump, print_callback=self._printing)
        return await self._run(snapshot, answers)

    async def _run(self, snapshot: monty.AsyncSnapshot, answers: Sequence[tuple[int, Answer]] = ()) -> Turn:
        left = list(answers)
        while True:
            match snapshot:
                case monty.MontyComplete():
                    return self._completed(snapshot)
                case monty.AsyncFunctionSnapshot():
                    answer = self._called(snapshot)
                    if answer is _TOO_MANY:
                        return self.failed("stopped", f"it asks for more than {self._limits.calls_max} calls")
                    snapshot = await (snapshot.resume(answer) if answer else snapshot.resume_not_handled())
                case monty.AsyncNameLookupSnapshot():
                    snapshot = await self._named(snapshot)
                case monty.AsyncFutureSnapshot():
                    answered = self._next(snapshot, left)
                    if answered is None:
                        return self._suspended(snapshot)
                    snapshot = await snapshot.resume(answered)

    def _called(self, snapshot: monty.AsyncFunctionSnapshot) -> monty.ExternalResult | None:
        """Note a call of a tool and promise its answer; None: it asks the operating system, which is not there."""
        if snapshot.is_os_function:
            return None
        name = str(snapshot.function_name)
        function = self._program.stubs.functions.get(name)
        if function is None or snapshot.object_id is not None:
            return {"exc_type": "NameError", "message": f"name {name[:100]!r} is not defined"}
        if snapshot.args:
            return {"exc_type": "TypeError", "message": f"{name}() takes arguments by name only"}
        try:
            given = argument_values(snapshot.kwargs, bytes_max=self._limits.arguments_bytes_max)
        except NotJson as error:
            return {"exc_type": "TypeError", "message": f"{name}(): {error}"}
        if self._asked >= self._limits.calls_max:
            return _TOO_MANY
        self._asked += 1
        self._pending[self._asked] = ProgramCall(self._asked, function.tool, function.arguments(given))
        self._handles[self._asked] = snapshot.call_id
        self._new.add(self._asked)
        return _LATER

    async def _named(self, snapshot: monty.AsyncNameLookupSnapshot) -> monty.AsyncSnapshot:
        """Let a program hold a function of its stubs as a value."""
        if snapshot.object_id is None and snapshot.variable_name in self._program.stubs.functions:
            return await snapshot.resume(value=_function(snapshot.variable_name))
        return await snapshot.resume()

    def _next(
        self, snapshot: monty.AsyncFutureSnapshot, left: list[tuple[int, Answer]]
    ) -> dict[int, monty.ExternalSettledResult] | None:
        """Return the next answer for which the program waits; None: it waits for others."""
        awaited = set(snapshot.pending_call_ids)
        while left:
            number, answer = left.pop(0)
            if number > self._asked:
                raise Diverged(number, "it has an outcome, and the program has not made it")
            handle = self._handles.pop(number, None)
            self._pending.pop(number, None)
            self._new.discard(number)
            if handle in awaited:
                return {handle: _result(answer)}
        return None

    def _suspended(self, snapshot: monty.AsyncFutureSnapshot) -> Turn:
        dump, bytes_max = snapshot.dump(), self._limits.snapshot_bytes_max
        if len(dump) > bytes_max:
            return self.failed("stopped", f"it holds {len(dump)} bytes while it waits; at most {bytes_max} are kept")
        pending = tuple(self._pending[number] for number in sorted(self._pending))
        return Suspended(dump, pending, self._handles, self._asked, self._text())

    def _completed(self, complete: monty.MontyComplete) -> Turn:
        if self._new:
            call = self._pending[min(self._new)]
            return self.failed(
                "raised", f"it ended without `await` before its call of {call.tool!r}: that call was not made"
            )
        value = readable_value(complete.output, bytes_max=self._limits.value_bytes_max)
        return Completed(value, self._text(), self._asked, tuple(sorted(self._pending)))

    def raised(self, error: monty.MontyRuntimeError | monty.MontySyntaxError) -> Failed:
        """Return the failure of a program that an exception has ended."""
        # The interpreter calls this a lack of memory, which would send its model after the wrong thing.
        if isinstance(error.exception(), MemoryError) and str(error).endswith(f"> {self._room} bytes"):
            return self.failed("stopped", f"it prints more than {self._limits.printed_bytes_max} bytes")
        if isinstance(error.exception(), TimeoutError) and _OUT_OF_TIME in str(error):
            return self.failed("stopped", error.display())
        return self.failed("raised", error.display())

    def failed(self, reason: Literal["rejected", "raised", "stopped"], message: str) -> Failed:
        """Return how the program failed; calls that nobody has heard of were never made."""
        known = tuple(sorted(self._pending.keys() - self._new))
        return Failed(reason, _bounded(message), self._text(), self._asked - len(self._new), known)

    def _text(self) -> str:
        return self._printed + self._printing.output


def _result(answer: Answer) -> monty.ExternalSettledResult:
    if isinstance(answer, Returned):
        return {"return_value": answer.value}
    return {"exc_type": answer.kind, "message": answer.message}


def _function(name: str) -> Any:
    """Return what stands for a tool where a program names it without a call; only its name crosses."""

    def tool() -> None: ...

    tool.__name__ = tool.__qualname__ = name
    return tool


def _bounded(message: str) -> str:
    """Return the end of a message, which names the error, and as much before it as there is room for."""
    message = message.strip()
    return message if len(message) <= MESSAGE_CHARS_MAX else f"…{message[-MESSAGE_CHARS_MAX:]}"
