"""Questions asked at the same time share a statement, and nothing else."""

import asyncio
from collections.abc import Sequence

import pytest

from wayline.contracts.errors import Bug
from wayline.store import Batcher, PostgresUnavailable
from wayline.testkit import until


class Statements:
    """Stands where the database is: holds each statement until it is let go, and keeps what was asked in it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[int]]] = []
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self, tenant: str, questions: Sequence[int]) -> list[int]:
        self.asked.append((tenant, list(questions)))
        self.begun.set()
        await self.may_end.wait()
        if 13 in questions:
            raise ValueError("thirteen")
        return [question * 10 for question in questions]


async def started(statements: Statements) -> None:
    await asyncio.wait_for(statements.begun.wait(), 5)


async def test_requests_during_a_statement_go_with_the_next():
    statements = Statements()
    batcher = Batcher(statements)
    first = asyncio.create_task(batcher.ask("acme", 1))
    await started(statements)
    rest = [asyncio.create_task(batcher.ask("acme", n)) for n in (2, 3)]
    other = asyncio.create_task(batcher.ask("globex", 9))
    await until(lambda: len(statements.asked) == 2, why="the other tenant does not wait for the first")
    statements.may_end.set()

    assert await asyncio.gather(first, *rest, other) == [10, 20, 30, 90]
    assert statements.asked == [("acme", [1]), ("globex", [9]), ("acme", [2, 3])]


async def test_a_statement_takes_only_so_many():
    statements = Statements()
    batcher = Batcher(statements, size_max=2)
    statements.may_end.set()

    assert await asyncio.gather(*(batcher.ask("acme", n) for n in range(5))) == [0, 10, 20, 30, 40]
    assert max(len(questions) for _, questions in statements.asked) == 2


async def test_one_wrong_question_does_not_take_its_neighbours_with_it():
    statements = Statements()
    batcher = Batcher(statements)
    first = asyncio.create_task(batcher.ask("acme", 1))
    await started(statements)
    rest = [asyncio.create_task(batcher.ask("acme", n)) for n in (2, 13, 3)]
    statements.may_end.set()
    await first

    answers = await asyncio.gather(*rest, return_exceptions=True)
    assert answers[0::2] == [20, 30]
    assert isinstance(answers[1], ValueError)


async def test_a_request_without_an_answer_fails_at_once():
    async def forgetful(_: str, questions: Sequence[int]) -> list[int]:
        return [question for question in questions if question != 13]

    batcher = Batcher(forgetful)
    asked = [asyncio.create_task(batcher.ask("acme", n)) for n in (1, 13, 2)]
    await asyncio.wait(asked, timeout=10)

    answers = await asyncio.gather(*(task for task in asked if task.done()), return_exceptions=True)
    assert answers[0::2] == [1, 2]
    assert isinstance(answers[1], Bug)


async def test_a_database_that_is_away_is_asked_once_for_all():
    asked: list[int] = []

    async def away(_: str, questions: Sequence[int]) -> list[int]:
        asked.append(len(questions))
        await asyncio.sleep(0)
        raise PostgresUnavailable(where="here", cause="gone")

    batcher = Batcher(away)
    answers = await asyncio.gather(*(batcher.ask("acme", n) for n in range(9)), return_exceptions=True)

    assert all(isinstance(answer, PostgresUnavailable) for answer in answers)
    assert sum(asked) == 9


async def test_a_cancelled_request_does_not_cancel_the_others():
    statements = Statements()
    batcher = Batcher(statements)
    first = asyncio.create_task(batcher.ask("acme", 1))
    await started(statements)
    second = asyncio.create_task(batcher.ask("acme", 2))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    statements.may_end.set()

    assert await second == 20
    assert await batcher.ask("acme", 4) == 40


async def test_statements_of_a_tenant_begin_apart_and_the_first_at_once():
    statements = Statements()
    statements.may_end.set()
    batcher = Batcher(statements, apart_s=0.3)
    assert await batcher.ask("acme", 1) == 10

    second = asyncio.create_task(batcher.ask("acme", 2))
    assert await batcher.ask("globex", 9) == 90
    third = asyncio.create_task(batcher.ask("acme", 3))

    assert await asyncio.gather(second, third) == [20, 30]
    assert statements.asked == [("acme", [1]), ("globex", [9]), ("acme", [2, 3])]
