"""When a model makes the same tool call again and again: what it is answered, and when its job ends. Pure."""

from __future__ import annotations

from wayline.contracts.tools import Effect
from wayline.executor.decide.accept_answer import cut_short
from wayline.executor.decide.actions import Complete, Fail
from wayline.journal import Call, Job, Repeated

ANSWERED_AFTER = 2
"""Identical results of identical calls; the next call is answered with that result, and the tool is not asked."""
ENDED_AFTER = 4
"""The next identical call is not made: the job ends."""
_TRANSIENT = frozenset({"timeout", "unavailable", "cancelled"})
"""Errors that the same call may not bring another time."""
_HARMLESS = frozenset({Effect.READ, Effect.IDEMPOTENT})


def answered_before(job: Job, call: Call) -> Repeated | None:
    """Return the earlier call whose result answers this one; None: the tool is to be asked.

    A tool that acts each time is always asked: to say that it returned something would be to say that it acted.
    """
    # A program may well look at the same thing again and again, and a note would be no result.
    if not job.tools.repeats:
        return None
    same = None if job.code.call(call.wanted.call) else job.tools.repeated(call.meant)
    if same is None or same.times < ANSWERED_AFTER or same.error in _TRANSIENT:
        return None
    definition = job.tools.definition(call.meant.tool)
    return same if definition is not None and definition.effect in _HARMLESS else None


def repeat_note(same: Repeated, tool: str) -> str:
    """Return what a model is told with the result of an earlier call."""
    return (
        f"[{tool} was not run again: with the same arguments it returned this {same.times} times before, first in step "
        f"{same.step}. Use this result, change the arguments, or answer with what you have.]"
    )


def is_looping(job: Job, call: Call) -> bool:
    """Return whether a call that is not begun is one repeat too many."""
    if call.key is not None or not job.tools.repeats:
        return False
    same = job.tools.repeated(call.meant)
    return same is not None and same.times >= ENDED_AFTER


def end_loop(job: Job) -> Complete | Fail | None:
    """End a job that goes round in a loop, once its open calls have ended."""
    looping = next((call for call in job.tools.calls if call.done is None and is_looping(job, call)), None)
    if looping is None or any(call.key is not None and call.done is None for call in job.tools.calls):
        return None
    times = f"{ENDED_AFTER} times with the same arguments and the same result"
    return cut_short(job, f"the model went round in a loop: it called {looping.meant.tool} {times}", "loop")
