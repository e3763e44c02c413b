"""The parts of a job whose client runs tools: each ends where calls are given out, the last with the job. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from wayline.contracts.events import Event, JobParked, JobSubmitted
from wayline.contracts.jobs import JobView, PendingToolCall
from wayline.contracts.money import Usage
from wayline.gateway.openai.model_names import NamedModel
from wayline.journal import fold, view


class JobPart:
    """One part of a job, read from its log: what it used, and the calls at its end."""

    def __init__(self, number: int = 1) -> None:
        self.number = number
        self.calls: tuple[PendingToolCall, ...] = ()
        """What it ends with, where its client is asked for results."""
        self._events: list[Event] = []
        self._given_out: set[str] = set()
        self._at = 1
        self._used_before = Usage()

    @property
    def is_under_way(self) -> bool:
        """Return whether what is heard now belongs to it."""
        return self._at == self.number

    def hear(self, event: Event) -> bool:
        """Note an event, and return whether the part ends with it; after that no more of the job is heard."""
        self._events.append(event)
        if not isinstance(event, JobParked):
            return False
        new = tuple(call for call in event.waiting.tool_calls if call.key not in self._given_out)
        if not new:
            # It was woken, and waits again for some of the same.
            return False
        self._given_out.update(call.key for call in new)
        if self._at == self.number:
            self.calls = new
            return True
        self._at += 1
        if self._at == self.number:
            self._used_before = fold(self._events).money.usage
        return False

    def view(self) -> JobView:
        """Return the job as it is at the end of what was heard, with what this part alone has used."""
        job = view(fold(self._events))
        return job.model_copy(update={"usage": job.usage - self._used_before})

    @property
    def model(self) -> str | None:
        """Return what its request named as the model; None: nothing of the job was heard."""
        first = self._events[0] if self._events else None
        if not isinstance(first, JobSubmitted):
            return None
        return str(NamedModel(first.job.agent, first.job.options.agent_label))

    @property
    def said(self) -> str:
        """Return what the model said beside the calls."""
        last = fold(self._events).conversation.last_said
        return last.text if last is not None else ""


def part_after(events: Iterable[Event], keys: Collection[str]) -> int | None:
    """Return the part that begins with the results of calls; None: the job has given none of them out."""
    given_out: set[str] = set()
    number, found = 1, None
    for event in events:
        if isinstance(event, JobParked):
            new = {call.key for call in event.waiting.tool_calls} - given_out
            if new:
                given_out |= new
                number += 1
                found = number if new & set(keys) else found
    return found
