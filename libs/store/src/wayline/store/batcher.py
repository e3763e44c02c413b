"""Batch the questions of one tenant that are asked at the same time into one statement."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from wayline.contracts.errors import Bug
from wayline.store.errors import PostgresUnavailable

Q = TypeVar("Q")
A = TypeVar("A")


class Batcher(Generic[Q, A]):
    """Collects a tenant's questions while an earlier statement is under way, and asks them in one statement.

    A question that comes alone is asked at once; a burst becomes a few statements, each with one round trip and one
    commit. Two statements of a tenant begin at least `apart_s` apart. The answers come in the order of the questions.
    """

    def __init__(
        self,
        run: Callable[[str, Sequence[Q]], Awaitable[Sequence[A]]],
        *,
        size_max: int = 256,
        apart_s: float = 0.0,
    ) -> None:
        self._run = run
        self._size_max = size_max
        self._apart_s = apart_s
        self._waiting: dict[str, deque[tuple[Q, asyncio.Future[A]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, tenant: str, question: Q) -> A:
        """Return the answer to one question. Raises the statement's error for it."""
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.get(tenant)
        if waiting is not None:
            waiting.append((question, answer))
        else:
            self._waiting[tenant] = deque([(question, answer)])
            # A task of its own: the first caller may be cancelled, and the others still need their answers.
            task = asyncio.create_task(self._go(tenant))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await answer

    async def _go(self, tenant: str) -> None:
        waiting = self._waiting[tenant]
        try:
            while waiting:
                taken = [waiting.popleft() for _ in range(min(self._size_max, len(waiting)))]
                wanted = [(question, answer) for question, answer in taken if not answer.done()]
                if wanted:
                    begun = asyncio.get_running_loop().time()
                    await self._answer(tenant, wanted)
                    await asyncio.sleep(begun + self._apart_s - asyncio.get_running_loop().time())
        finally:
            del self._waiting[tenant]
            for _, answer in waiting:
                answer.cancel()

    async def _answer(self, tenant: str, batch: Sequence[tuple[Q, asyncio.Future[A]]]) -> None:
        try:
            answers = await self._run(tenant, [question for question, _ in batch])
            if len(answers) != len(batch):
                raise Bug(f"{len(batch)} questions have {len(answers)} answers")
        except Exception as error:
            if len(batch) == 1 or isinstance(error, PostgresUnavailable):
                for _, future in batch:
                    _fail(future, error)
                return
            # One of them may be at fault: each gets its own statement, and its own error.
            for one in batch:
                await self._answer(tenant, [one])
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)


def _fail(future: asyncio.Future[A], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
