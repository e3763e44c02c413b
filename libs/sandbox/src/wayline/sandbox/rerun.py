"""A program again from its beginning, with the recorded outcomes of its calls in the place of its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wayline.sandbox.errors import Diverged
from wayline.sandbox.json_values import same_json
from wayline.sandbox.program import Answer, Program, ProgramCall, Suspended, Turn
from wayline.sandbox.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class Recording:
    """What is known of a program that has run before."""

    calls: Mapping[int, ProgramCall] = field(default_factory=dict)
    """The calls that it has asked for, by number."""
    answers: Sequence[tuple[int, Answer]] = ()
    """Their outcomes, in the order in which it was given them."""


async def rerun(sandbox: Sandbox, program: Program, recording: Recording, *, begin: Suspended | None = None) -> Turn:
    """Run a program to where its recording ends, from its beginning or from `begin`. Raises Diverged, Unavailable."""
    turn = begin or await sandbox.start(program)
    _compare(recording, turn)
    given = _given(begin)
    for answer in recording.answers:
        if not isinstance(turn, Suspended):
            break
        if answer[0] in given:
            continue
        turn = await sandbox.resume(program, turn, [answer])
        _compare(recording, turn)
    missing = [number for number in recording.calls if number > turn.asked]
    if missing:
        raise Diverged(min(missing), "the program does not make it")
    return turn


def _given(begin: Suspended | None) -> set[int]:
    """Return the numbers of the calls whose answers a suspended program has."""
    if begin is None:
        return set()
    return set(range(1, begin.asked + 1)) - {call.number for call in begin.pending}


def _compare(recording: Recording, turn: Turn) -> None:
    for call in turn.pending if isinstance(turn, Suspended) else ():
        recorded = recording.calls.get(call.number)
        if recorded is None:
            continue
        if recorded.tool != call.tool:
            raise Diverged(call.number, f"it is of {call.tool!r}, recorded is {recorded.tool!r}")
        if not same_json(recorded.arguments, call.arguments):
            raise Diverged(call.number, f"{call.tool!r} is given other arguments than recorded")
