"""A program runs again from its recorded outcomes, or is found to have diverged."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from wayline.sandbox import (
    Answer,
    Completed,
    Diverged,
    ProgramCall,
    Raised,
    Recording,
    Returned,
    Sandbox,
    Suspended,
    rerun,
)
from wayline.testkit.walks import seeds

from .programs import asked, program

CHAINS = program(
    """
    import asyncio, random
    async def chain(name):
        found = [name]
        for n in range(3):
            try:
                page = await fetch(url=f"{name}/{n}/{random.random()}")
                found.append(await fetch(url=page, part="head"))
            except RuntimeError as error:
                found.append(str(error))
        return found
    print("begun")
    chains = await asyncio.gather(*[chain(name) for name in "abcd"])
    print("ended")
    sorted(chains)
    """
)


def outcome(call: ProgramCall) -> Answer:
    return Raised(f"no {call.number}") if call.number % 5 == 0 else Returned(f"page {call.number}")


async def recorded(
    sandbox: Sandbox, order: random.Random
) -> tuple[dict[int, ProgramCall], list[tuple[int, Answer]], Completed]:
    """Run the chains with outcomes in a random order."""
    calls: dict[int, ProgramCall] = {}
    answers: list[tuple[int, Answer]] = []
    turn = await sandbox.start(CHAINS)
    while isinstance(turn, Suspended):
        calls |= {call.number: call for call in turn.pending}
        some = order.sample(turn.pending, order.randint(1, len(turn.pending)))
        given = [(call.number, outcome(call)) for call in some]
        answers += given
        turn = await sandbox.resume(CHAINS, turn, given)
    assert isinstance(turn, Completed)
    return calls, answers, turn


@pytest.mark.parametrize("seed", seeds(3))
async def test_a_rerun_ends_like_the_first_run_in_any_outcome_order(sandbox: Sandbox, seed: int):
    calls, answers, ended = await recorded(sandbox, random.Random(seed))

    assert len(calls) == len(answers) > 20
    assert await rerun(sandbox, CHAINS, Recording(calls, answers)) == ended


async def test_a_rerun_of_every_prefix_goes_on_to_the_same_end(sandbox: Sandbox):
    calls, answers, ended = await recorded(sandbox, random.Random(7))

    for size in range(0, len(answers), 4):
        known = await rerun(sandbox, CHAINS, Recording({}, answers[:size]))
        assert isinstance(known, Suspended)
        assert {call.number: call for call in known.pending}.items() <= calls.items()
        assert await sandbox.resume(CHAINS, known, answers[size:]) == ended


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"tool": "crm-save"}, "it is of 'fetch', recorded is 'crm-save'"),
        ({"arguments": {"url": "b"}}, "'fetch' is given other arguments than recorded"),
    ],
)
async def test_another_call_than_the_recorded_one_is_loud(sandbox: Sandbox, changed: dict[str, object], problem: str):
    running = program("page = await fetch(url='a')\nawait fetch(url=page)")
    call = replace(ProgramCall(1, "fetch", {"url": "a"}), **changed)

    with pytest.raises(Diverged, match=f"call 1 of the program is not the one that is recorded: {problem}"):
        await rerun(sandbox, running, Recording({1: call}))


async def test_a_changed_outcome_is_noticed_at_the_call_that_it_changes(sandbox: Sandbox):
    running = program("page = await fetch(url='a')\nawait fetch(url=page)")
    calls = {1: ProgramCall(1, "fetch", {"url": "a"}), 2: ProgramCall(2, "fetch", {"url": "b"})}

    turn = await rerun(sandbox, running, Recording(calls, [(1, Returned("b"))]))
    assert asked(turn) == [(2, "fetch", {"url": "b"})]
    with pytest.raises(Diverged, match="call 2"):
        await rerun(sandbox, running, Recording(calls, [(1, Returned("c"))]))


@pytest.mark.parametrize(
    "recording",
    [
        Recording({2: ProgramCall(2, "fetch", {"url": "a"})}, [(1, Returned("x"))]),
        Recording({}, [(2, Returned("x"))]),
    ],
)
async def test_a_recorded_call_that_is_not_made_is_loud(sandbox: Sandbox, recording: Recording):
    with pytest.raises(Diverged, match="call 2 .* program (does not make|has not made) it"):
        await rerun(sandbox, program("await fetch(url='a')"), recording)
