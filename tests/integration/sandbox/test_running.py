"""A program runs from answer to answer, and its calls are only ever asked for."""

from __future__ import annotations

import pytest

from wayline.sandbox import Completed, Failed, Limits, Raised, Returned, Sandbox, Suspended

from .programs import asked, program, run

FETCH_TWO = """
    import asyncio
    pages = await asyncio.gather(fetch(url="a"), fetch(url="b"))
    print("fetched", len(pages))
    saved = await crm_save(record={"pages": pages})
    {"saved": saved, "first": pages[0]["title"]}
"""


async def test_a_program_suspends_at_its_calls_and_ends_with_its_value(sandbox: Sandbox):
    running = program(FETCH_TWO)

    first = await sandbox.start(running)
    assert asked(first) == [(1, "fetch", {"url": "a"}), (2, "fetch", {"url": "b"})]
    second = await sandbox.resume(running, first, [(2, Returned({"title": "B"})), (1, Returned({"title": "A"}))])
    assert asked(second) == [(3, "crm-save", {"record": {"pages": [{"title": "A"}, {"title": "B"}]}})]
    last = await sandbox.resume(running, second, [(3, Returned("ok"))])

    assert last == Completed({"saved": "ok", "first": "A"}, "fetched 2\n", asked=3)


async def test_calls_beside_each_other_are_answered_one_at_a_time(sandbox: Sandbox):
    running = program(
        """
        import asyncio
        async def chain(name):
            page = await fetch(url=name)
            return await fetch(url=page)
        await asyncio.gather(chain("a"), chain("b"))
        """
    )

    turn = await sandbox.start(running)
    turn = await sandbox.resume(running, turn, [(2, Returned("b2"))])
    assert asked(turn) == [(1, "fetch", {"url": "a"}), (3, "fetch", {"url": "b2"})]
    turn = await sandbox.resume(running, turn, [(3, Returned("b3")), (1, Returned("a2"))])
    assert asked(turn) == [(4, "fetch", {"url": "a2"})]

    assert await sandbox.resume(running, turn, [(4, Returned("a3"))]) == Completed(["a3", "b3"], "", asked=4)


async def test_a_suspended_program_goes_on_in_another_sandbox(sandbox: Sandbox):
    running = program(FETCH_TWO)
    turn = await sandbox.start(running)
    assert isinstance(turn, Suspended)
    await sandbox.close()

    async with Sandbox() as other:
        turn = await other.resume(running, turn, [(1, Returned({"title": "A"})), (2, Returned({"title": "B"}))])
        assert isinstance(turn, Suspended)
        last = await other.resume(running, turn, [(3, Returned("ok"))])

    assert last == Completed({"saved": "ok", "first": "A"}, "fetched 2\n", asked=3)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("await fetch()", "main.py:1:7: error[missing-argument] No argument provided for required parameter `url`"),
        ("await fetch('a')", "too-many-positional-arguments"),
        ("await fetch(url=1)", "Expected `str`"),
        ("await fetch(url='a', part='tail')", 'Expected `Literal["head", "body"]`'),
        ("page = fetch(url='a')\npage['title']", "CoroutineType"),
        ("await fetsch(url='a')", "Name `fetsch` used when not defined"),
        ("import requests", "unresolved-import"),
        ("def f(:", "invalid-syntax"),
        ("x = 1" + " " * 70_000, "at most 65536 are run"),
    ],
)
async def test_a_program_with_a_type_error_does_not_run(sandbox: Sandbox, code: str, problem: str):
    turn = await sandbox.start(program(f"print('ran')\n{code}"))

    assert isinstance(turn, Failed)
    assert (turn.reason, turn.printed, turn.asked) == ("rejected", "", 0)
    assert problem.replace(":1:", ":2:") in turn.message


async def test_a_failed_call_is_an_exception_in_the_program(sandbox: Sandbox):
    code = """
        found = []
        for url in ["a", "b", "c"]:
            try:
                found.append(await fetch(url=url))
            except TimeoutError as error:
                found.append("late: " + str(error))
        found
    """

    turn = await run(sandbox, code, {2: Raised("after 5 s", "TimeoutError"), 3: Returned(None)})

    assert turn == Completed([1, "late: after 5 s", None], "", asked=3)


async def test_an_exception_ends_the_program_with_its_place(sandbox: Sandbox):
    turn = await run(sandbox, "page = await fetch(url='a')\nprint('got it')\npage['title']")

    assert isinstance(turn, Failed)
    assert (turn.reason, turn.printed, turn.asked) == ("raised", "got it\n", 1)
    assert turn.message.startswith("Traceback")
    assert "line 3" in turn.message
    assert turn.message.endswith("TypeError: 'int' object is not subscriptable")


async def test_a_call_that_is_never_awaited_is_named_and_not_made(sandbox: Sandbox):
    turn = await sandbox.start(program("page = fetch(url='a')\n5"))

    assert isinstance(turn, Failed)
    assert "without `await` before its call of 'fetch'" in turn.message
    assert (turn.asked, turn.abandoned) == (0, ())


async def test_calls_that_a_program_gives_up_are_named(sandbox: Sandbox):
    running = program(
        """
        import asyncio
        try:
            await asyncio.gather(fetch(url="a"), fetch(url="b"))
        except RuntimeError:
            pass
        "gave up"
        """
    )
    turn = await sandbox.start(running)
    assert isinstance(turn, Suspended)

    turn = await sandbox.resume(running, turn, [(2, Raised("broken"))])

    assert turn == Completed("gave up", "", asked=2, abandoned=(1,))


async def test_an_answer_for_which_nobody_waits_changes_nothing(sandbox: Sandbox):
    running = program(
        """
        import asyncio
        try:
            await asyncio.gather(fetch(url="a"), fetch(url="b"))
        except RuntimeError:
            pass
        await fetch(url="c")
        """
    )
    turn = await sandbox.start(running)
    assert isinstance(turn, Suspended)
    turn = await sandbox.resume(running, turn, [(2, Raised("broken"))])
    assert isinstance(turn, Suspended)

    turn = await sandbox.resume(running, turn, [(1, Returned("late")), (3, Returned("c"))])

    assert turn == Completed("c", "", asked=3)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("await eval('fetch(\"a\")')", "fetch() takes arguments by name only"),
        ("await crm_save(record={'when': {1, 2}})", "record.when is a set of 2, of type set: no value of JSON"),
        ("await crm_save(record={'x': 'y' * 70_000})", "the arguments have more than 65536 bytes"),
        ("await eval('delete_everything(sure=True)')", "name 'delete_everything' is not defined"),
        ("exec('await fetch(')", "SyntaxError"),
    ],
)
async def test_a_call_that_cannot_be_made_is_an_exception(sandbox: Sandbox, code: str, problem: str):
    turn = await sandbox.start(program(code))

    assert isinstance(turn, Failed)
    assert (turn.reason, turn.asked) == ("raised", 0)
    assert problem in turn.message


async def test_a_function_of_the_stubs_is_a_value(sandbox: Sandbox):
    code = """
        from functools import partial
        head = partial(fetch, part="head")
        by_name = {"fetch": fetch}
        [await head(url="a"), await by_name["fetch"](url="b")]
    """

    assert await run(sandbox, code) == Completed([1, 2], "", asked=2)


async def test_clock_and_random_numbers_are_the_same_in_every_run(sandbox: Sandbox):
    code = """
        import random, time, asyncio
        from datetime import datetime
        await asyncio.sleep(3600)
        [time.time(), datetime.now().isoformat(), random.random(), str({"a", "b", "c"}), hash("x")]
    """

    turns = [await run(sandbox, code) for _ in range(3)]

    assert turns[0] == turns[1] == turns[2]
    assert isinstance(turns[0], Completed)
    assert turns[0].value[:2] == [1795435200.0, "2026-11-23T12:00:00"]


async def test_more_calls_than_the_limit_stop_the_program():
    async with Sandbox(limits=Limits(calls_max=3)) as sandbox:
        turn = await run(
            sandbox, "for n in range(9):\n    try:\n        await fetch(url='a')\n    except Exception: pass"
        )

    assert isinstance(turn, Failed)
    assert (turn.reason, turn.message, turn.asked) == ("stopped", "it asks for more than 3 calls", 3)


async def test_time_in_which_a_program_waits_is_not_counted():
    async with Sandbox(limits=Limits(execution_s_max=0.2)) as sandbox:
        quick = "for n in range(20):\n    await fetch(url='a')\n'done'"
        slow = "for n in range(20):\n    await fetch(url='a')\n    for m in range(10_000_000): pass\n'done'"

        assert await run(sandbox, quick) == Completed("done", "", asked=20)
        turn = await run(sandbox, slow)

    assert isinstance(turn, Failed)
    assert turn.reason == "stopped"
    assert "TimeoutError: feed time limit exceeded" in turn.message


async def test_printed_text_has_one_limit_for_all_turns():
    async with Sandbox(limits=Limits(printed_bytes_max=2_000)) as sandbox:
        turn = await run(sandbox, "for n in range(9):\n    print('x' * 900)\n    await fetch(url='a')")

    assert isinstance(turn, Failed)
    assert turn.message == "it prints more than 2000 bytes"
    assert len(turn.printed) < 2_000


async def test_a_state_too_large_to_keep_stops_the_program():
    async with Sandbox(limits=Limits(snapshot_bytes_max=50_000)) as sandbox:
        turn = await sandbox.start(program("held = 'x' * 60_000\nawait fetch(url='a')\nlen(held)"))

    assert isinstance(turn, Failed)
    assert "while it waits; at most 50000 are kept" in turn.message
    assert (turn.asked, turn.abandoned) == (0, ())
