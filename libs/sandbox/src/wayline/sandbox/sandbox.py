"""Runs programs in processes of their own, one turn at a time: from an answer to the next calls."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, suppress
from typing import Any

import pydantic_monty as monty

from wayline.contracts.errors import Unavailable
from wayline.sandbox.interpreter_turn import InterpreterTurn
from wayline.sandbox.limits import Limits
from wayline.sandbox.program import Answer, Failed, Program, Suspended, Turn

WORKERS_MAX = 4
"""Programs that compute at once; those that wait for their calls have no process."""
WORKER_WAIT_S = 60.0
"""How long a program waits in all for a worker: its tenant's turn, and the process."""
TURN_GRACE_S = 10.0
"""How long a turn may take beyond the seconds in which it may compute: its type check, and what passes the pipe."""
LIMIT_GRACE_S = 1.0

TakeTurn = Callable[[str], AbstractAsyncContextManager[None]]
"""Waits until a tenant's next program may have a worker, and holds that place."""


class Sandbox:
    """Worker processes for programs. Each serves one turn of one program and ends, so no two programs meet in one."""

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        workers_max: int = WORKERS_MAX,
        worker_wait_s: float = WORKER_WAIT_S,
        take_turn: TakeTurn | None = None,
    ) -> None:
        """Make a sandbox; `take_turn` shares its workers out between tenants, without it the first comes first."""
        self._limits = limits or Limits()
        self._take_turn = take_turn
        self._worker_wait_s = worker_wait_s
        self._open = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._pool: monty.AsyncMonty | None = None
        self._closed = False
        self._computing: set[int] = set()
        """The processes of turns under way."""
        self._unwanted: set[asyncio.Task[None]] = set()
        """Checkouts whose turn was cancelled, until their workers have ended."""
        self._settings = {
            "min_processes": 0,
            "max_processes": workers_max,
            "max_checkouts_per_worker": 1,
            "checkout_timeout": worker_wait_s,
            "request_timeout": self._limits.execution_s_max + TURN_GRACE_S,
            "feed_duration_limit_grace": LIMIT_GRACE_S,
        }

    async def close(self) -> None:
        """End all worker processes; turns under way fail."""
        self._closed = True
        for pid in self._computing:
            _kill(pid)
        await asyncio.gather(*self._unwanted)
        await self._open.aclose()

    async def __aenter__(self) -> Sandbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self, program: Program) -> Turn:
        """Check a program against its stubs and run it to its first calls. Raises Unavailable."""
        size, size_max = len(program.code.encode(errors="replace")), self._limits.source_bytes_max
        if size > size_max:
            return Failed("rejected", f"the program has {size} bytes; at most {size_max} are run")
        turn = InterpreterTurn(program, self._limits)
        return await self._run(program, turn, turn.start, checked=True)

    async def resume(self, program: Program, suspended: Suspended, answers: Sequence[tuple[int, Answer]]) -> Turn:
        """Give a program answers to its calls, in this order, one after another. Raises Unavailable.

        The order decides which calls the program asks for next, and so their numbers. An answer to a call for which
        the program does not wait any more changes nothing.
        """
        turn = InterpreterTurn(program, self._limits, suspended)
        return await self._run(program, turn, lambda session: turn.resume(session, answers), checked=False)

    async def _run(
        self,
        program: Program,
        turn: InterpreterTurn,
        run: Callable[[monty.AsyncMontySession], Coroutine[Any, Any, Turn]],
        *,
        checked: bool,
    ) -> Turn:
        pool = await self._opened()
        async with AsyncExitStack() as stack:
            await self._wait_for_turn(program, stack)
            session = pool.checkout(**self._checkout(program, checked=checked))
            await self._enter(session)
            stack.push_async_exit(session)
            try:
                with self._killed_if_cancelled(session.worker_pid):
                    return await run(session)
            except monty.MontyTypingError as error:
                return turn.failed("rejected", error.display())
            except (monty.MontyRuntimeError, monty.MontySyntaxError) as error:
                return turn.raised(error)
            except monty.MontyCrashedError:
                return turn.failed("stopped", "it took too long, or needed more memory or stack than it may have")

    async def _wait_for_turn(self, program: Program, stack: AsyncExitStack) -> None:
        """Have a worker free for the program's tenant until the stack ends. Raises Unavailable."""
        if self._take_turn is None:
            return
        try:
            async with asyncio.timeout(self._worker_wait_s):
                await stack.enter_async_context(self._take_turn(program.tenant))
        except TimeoutError:
            raise Unavailable("a worker process for programs", detail="its tenant has its share of them") from None

    async def _enter(self, session: monty.AsyncMontySession) -> None:
        """Wait for a worker. The pool loses one whose checkout is cancelled, so that goes on, and its worker ends."""
        entering = asyncio.ensure_future(session.__aenter__())
        try:
            await asyncio.shield(entering)
        except TimeoutError:
            raise Unavailable("a worker process for programs") from None
        except asyncio.CancelledError:
            leaving = asyncio.create_task(self._leave(session, entering))
            self._unwanted.add(leaving)
            leaving.add_done_callback(self._unwanted.discard)
            raise

    async def _leave(self, session: monty.AsyncMontySession, entering: asyncio.Future[Any]) -> None:
        with suppress(TimeoutError, monty.MontyError):
            await entering
            await session.__aexit__(None, None, None)

    @contextmanager
    def _killed_if_cancelled(self, pid: int | None) -> Iterator[None]:
        """End a worker whose turn nobody awaits any more: by itself it would compute for as long as it may."""
        if self._closed:
            raise Unavailable("the sandbox", detail="it is closed")
        assert pid is not None
        self._computing.add(pid)
        try:
            yield
        except asyncio.CancelledError:
            _kill(pid)
            raise
        finally:
            self._computing.discard(pid)

    async def _opened(self) -> monty.AsyncMonty:
        async with self._opening:
            if self._closed:
                raise Unavailable("the sandbox", detail="it is closed")
            if self._pool is None:
                self._pool = await self._open.enter_async_context(monty.AsyncMonty(**self._settings))
            return self._pool

    def _checkout(self, program: Program, *, checked: bool) -> dict[str, Any]:
        return {
            "limits": {
                "max_feed_duration_secs": self._limits.execution_s_max,
                "max_memory": self._limits.memory_bytes_max,
                "max_recursion_depth": self._limits.recursion_max,
                "max_suspensions": self._limits.suspensions_max,
            },
            "type_check": checked,
            "type_check_stubs": program.stubs.text if checked else None,
            "type_check_format": "concise",
            # The same program with the same answers does the same, wherever and whenever it runs.
            "os_policy": {
                "datetime": program.now,
                "timezone": "utc",
                "sleep": "zero",
                "random_start": {"seed": program.seed},
            },
        }


def _kill(pid: int) -> None:
    # The pool reaps a worker only after its turn: until then the number is no other process's.
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
