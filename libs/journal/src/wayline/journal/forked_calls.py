"""Which tool calls of its origin a fork takes along, and which it makes again. Pure.

A program that is open where the fork branches off runs again, from the recorded results of its calls. So its intent,
whose key and time are its seed and its clock, is taken along, and its end is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from wayline.contracts import events as e
from wayline.contracts.errors import Reject
from wayline.contracts.tools import RUN_CODE, Effect

REPEATABLE = frozenset({Effect.READ, Effect.IDEMPOTENT})
UNCERTAIN = frozenset({"timeout", "cancelled"})
"""Codes of calls that may have taken effect all the same."""

Events = Sequence[e.Event]
Place = tuple[int, str]
"""A call's step and name."""


class ForkRefused(Reject):
    """A job cannot branch off there."""

    code = "fork_invalid"
    status = 422


@dataclass(frozen=True, slots=True)
class SharedEvents:
    """The events of its origin that a fork shares: those up to one of them, without some, and some later ones."""

    after: int
    later: frozenset[int] = frozenset()
    without: frozenset[int] = frozenset()

    def holds(self, seq: int) -> bool:
        """Return whether an event is shared."""
        return seq in self.later if seq > self.after else seq not in self.without


def shared_until(events: Events, after: int) -> SharedEvents:
    """Return what is shared up to an event, with the ends of the calls that are open there: none of them is repeated.

    Raises ForkRefused where such a call has no result.
    """
    later: set[int] = set()
    without: set[int] = set()
    for requested in _open(events[:after]):
        if _is_program(requested):
            own_end = _completed_program(events[:after], requested)
            without |= {own_end.seq} if own_end else set()
            continue
        end = _end(events, requested)
        if end is None:
            raise ForkRefused(
                f"the call {requested.call} of {requested.tool} in step {requested.step} has no result: fork after "
                f"event {requested.seq - 1}, before it was begun"
            )
        later.add(end.seq)
    return SharedEvents(after, frozenset(later), frozenset(without))


def shared_before_failure(events: Events) -> SharedEvents:
    """Return where a failed job goes on: before the tool calls that failed at its end, else before its last model call.

    Calls that succeeded stay, and so do those that may have taken effect although they failed. Raises ForkRefused.
    """
    if not isinstance(events[-1], e.JobFailed):
        raise ForkRefused("say after which event it branches off: only a failed job has a step that failed")
    asked = [event for event in events if isinstance(event, e.ModelRequested | e.ModelCompleted | e.ModelFailed)]
    if not asked:
        return SharedEvents(min(2, len(events) - 1))
    last = asked[-1]
    answer = None if isinstance(last, e.ModelFailed) else _answer_with_failed_calls(events)
    if answer is None and isinstance(last, e.ModelCompleted) and _requested(events, last.step):
        # It failed after calls that are not made again: to ask for them anew might repeat what they did.
        return shared_until(events, events[-1].seq - 1)
    if answer is None:
        first = next(event for event in asked if isinstance(event, e.ModelRequested) and event.step == last.step)
        return shared_until(events, first.seq - 1)
    return SharedEvents(answer.seq, _without_repeatable(events, answer.step))


def _answer_with_failed_calls(events: Events) -> e.ModelCompleted | None:
    """Return the answer with which the trouble began: the first of the last steps whose calls nearly all failed."""
    found: e.ModelCompleted | None = None
    for answer in reversed([event for event in events if isinstance(event, e.ModelCompleted)]):
        if not answer.message.tool_calls:
            continue
        begun = [event for event in _requested(events, answer.step) if not _is_judged_by_its_calls(events, event)]
        bad = [event for event in begun if not _succeeded(events, event)]
        if not any(_is_made_again(events, event) for event in bad):
            break
        found = answer
        if len(bad) < len(begun):
            break
    return found


def _without_repeatable(events: Events, step: int) -> frozenset[int]:
    """Return the events of a step's calls that are not made again."""
    kept: set[int] = set()
    rerun: e.ToolRequested | None = None
    for requested in _requested(events, step):
        if requested.program is not None or (rerun is not None and _is_program(requested)):
            # The numbers of a later program's calls follow from how many this one makes: it begins anew, too.
            continue
        if not _is_program(requested):
            kept |= _kept_call(events, requested)
        elif (begins := _made_again_from(events, requested)) is None:
            kept |= _whole_program(events, requested)
        else:
            rerun = requested
            kept |= {requested.seq} | _recorded_calls(events, requested, begins)
    return frozenset(kept)


def _kept_call(events: Events, requested: e.ToolRequested) -> set[int]:
    """Return the intent and the end of a call that is not made again."""
    done = _end(events, requested)
    if not _succeeded(events, requested) and _may_repeat(events, requested):
        return set()
    if done is None:
        raise _unknown(requested)
    return {requested.seq, done.seq}


def _unknown(requested: e.ToolRequested) -> ForkRefused:
    return ForkRefused(
        f"nobody knows whether the call {requested.call} of {requested.tool} in step {requested.step} took effect: "
        "fork after an event of your choice"
    )


def _made_again_from(events: Events, program: e.ToolRequested) -> float | None:
    """Return the event from which on a program's calls are made again; infinity: all that are recorded stay.

    None: it would do the same again. The calls that it asked for after a failed one may rest on that failure, so they
    are made again with it, which they have to bear.
    """
    asked = _asked_at(events, program.step)
    intents = {_place(event): event for event in _requested(events, program.step) if event.program is not None}
    own = [event for event in intents.values() if event.program == program.call]
    failed = [event for event in own if not _succeeded(events, event) and _may_repeat(events, event)]
    for end in sorted(_end_seq(events, event) for event in failed):
        if all(_may_repeat(events, event) for place, event in intents.items() if asked[place] > end):
            return end
    return None if _completed_program(events, program) else inf


def _recorded_calls(events: Events, program: e.ToolRequested, begins: float) -> set[int]:
    """Return the events of the calls from whose results a program runs again."""
    intents = {_place(event): event for event in _requested(events, program.step) if event.program == program.call}
    kept: set[int] = set()
    for place, seq in _asked_at(events, program.step, program.call).items():
        requested = intents.get(place)
        end = next((done for done in _completions(events) if _place(done) == place), None)
        if seq > begins or (requested is None and end is None):
            continue
        if requested is not None and not _succeeded(events, requested):
            if _may_repeat(events, requested) and _end_seq(events, requested) >= begins:
                continue
            if end is None:
                raise _unknown(requested)
        kept |= _events_at(events, place)
    return kept


def _whole_program(events: Events, program: e.ToolRequested) -> set[int]:
    """Return the events of a program that is not run again."""
    places = [_place(program), *_asked_at(events, program.step, program.call)]
    end = _completed_program(events, program)
    return set().union(*(_events_at(events, place) for place in places), {end.seq} if end else set())


def _is_program(event: e.ToolRequested) -> bool:
    return event.tool == RUN_CODE and event.program is None


def _is_judged_by_its_calls(events: Events, event: e.ToolRequested) -> bool:
    """Return whether a call is a program that has ended by itself, and made calls."""
    made = any(call.program == event.call for call in _requested(events, event.step))
    return made and _is_program(event) and _completed_program(events, event) is not None


def _is_made_again(events: Events, event: e.ToolRequested) -> bool:
    """Return whether a failed call would be made again."""
    if event.program is None or not _may_repeat(events, event):
        return _may_repeat(events, event)
    program = next(
        (one for one in _requested(events, event.step) if _is_program(one) and one.call == event.program), None
    )
    begins = None if program is None else _made_again_from(events, program)
    return begins is not None and _end_seq(events, event) >= begins


def _may_repeat(events: Events, requested: e.ToolRequested) -> bool:
    """Return whether a call surely took no effect, or may take it twice."""
    if requested.effect in REPEATABLE:
        return True
    done = _end(events, requested)
    return done is not None and done.error is not None and done.error.code not in UNCERTAIN


def _open(events: Events) -> list[e.ToolRequested]:
    ended = {_place(done) for done in _completions(events)}
    begun = {_place(event): event for event in events if isinstance(event, e.ToolRequested)}
    return [event for place, event in begun.items() if place not in ended]


def _requested(events: Events, step: int) -> list[e.ToolRequested]:
    return [event for event in events if isinstance(event, e.ToolRequested) and event.step == step]


def _completions(events: Events) -> list[e.ToolCompleted]:
    return [event for event in events if isinstance(event, e.ToolCompleted)]


def _completed_program(events: Events, program: e.ToolRequested) -> e.CodeCompleted | None:
    ends = (event for event in events if isinstance(event, e.CodeCompleted))
    return next((end for end in ends if (end.step, end.call) == _place(program)), None)


def _asked_at(events: Events, step: int, program: str | None = None) -> dict[Place, int]:
    """Return where the calls of a step's programs, or of one of them, were first asked for."""
    found: dict[Place, int] = {}
    for event in events:
        if not isinstance(event, e.ApprovalRequested | e.ToolRequested) or event.step != step:
            continue
        if event.program is not None and program in (None, event.program):
            found.setdefault(_place(event), event.seq)
    return found


def _events_at(events: Events, place: Place) -> set[int]:
    """Return the events of one call that its program's run rests on."""
    return {
        event.seq
        for event in events
        if isinstance(event, e.ApprovalRequested | e.ToolRequested | e.ToolCompleted) and _place(event) == place
    }


def _end(events: Events, requested: e.ToolRequested) -> e.ToolCompleted | None:
    return next((done for done in _completions(events) if _place(done) == _place(requested)), None)


def _end_seq(events: Events, requested: e.ToolRequested) -> float:
    done = _end(events, requested)
    return inf if done is None else done.seq


def _succeeded(events: Events, requested: e.ToolRequested) -> bool:
    done = _end(events, requested)
    return done is not None and done.status == "success"


def _place(event: e.ApprovalRequested | e.ToolRequested | e.ToolCompleted) -> Place:
    return event.step, event.call
