"""Derive from a job's events what a user interface shows of it: one state at a time, begun and finished."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import NamedTuple, TypeAlias

from wayline.contracts import events as e
from wayline.contracts.jobs import CallProgress, Delta, QueuePlace
from wayline.contracts.observation import joined, observation, tool_state
from wayline.contracts.progress import Progress, ProgressState
from wayline.contracts.tools import USE_TOOL
from wayline.journal.follow import News

ProgressNews: TypeAlias = AsyncGenerator[e.Event | Delta | Progress | QueuePlace | None, None]

MESSAGES: dict[ProgressState, str] = {
    "analyzing": "Reading the task",
    "reasoning": "Thinking about the next step",
    "executing_tools": "Using tools",
    "observing_results": "Reading the results",
    "searching_web": "Searching the web",
    "fetching_content": "Fetching pages",
    "retrieving_memory": "Looking into memory",
    "saving_memory": "Saving to memory",
    "generating_response": "Writing the answer",
}


class _Ended(NamedTuple):
    tool: str
    ok: bool
    observed: str


async def with_progress(news: News, after_seq: int = 0) -> ProgressNews:
    """Yield a job's news past `after_seq`, each event after the progress that it makes.

    `news` begins with the log's first event: what a job does depends on all of them. Progress comes before its event:
    a client that was cut between them names the event before, and is told both again.
    """
    reader = ProgressReader()
    async with aclosing(news) as items:
        async for item in items:
            if isinstance(item, Delta) and item.tool is not None:
                if (running := reader.hear(item.tool, step=item.step)) is not None:
                    yield running
                continue
            if not isinstance(item, e.Event):
                yield item
                continue
            made = reader.read(item)
            if item.seq > after_seq:
                for progress in made:
                    yield progress
                yield item


def progress_after(events: Iterable[e.Event]) -> Progress | None:
    """Return what a job does after these events, its first among them; None: it waits or has ended."""
    reader = ProgressReader()
    for event in events:
        reader.read(event)
    return reader.under_way


class ProgressReader:
    """Reads a job's events in their order, from the first."""

    def __init__(self) -> None:
        self._open: Progress | None = None
        self._parked: Progress | None = None
        self._step = 0
        self._steps_max: int | None = None
        self._arguments: dict[str, tuple[str, dict[str, object]]] = {}
        self._ended: dict[str, _Ended] = {}
        self._wanted: dict[str, str] = {}

    @property
    def under_way(self) -> Progress | None:
        """Return what has begun and is not over."""
        return self._open

    def read(self, event: e.Event) -> list[Progress]:
        """Return the progress that an event makes: what it finishes, then what it begins."""
        match event:
            case e.JobSubmitted():
                return self._begin("analyzing")
            case e.JobRouted():
                self._steps_max = event.limits.max_steps if event.limits else None
                return []
            case e.ModelRequested():
                self._step = event.step
                return self._begin("reasoning")
            case e.ModelCompleted():
                return self._answered(event)
            case e.ToolRequested():
                self._arguments[event.call] = event.tool, event.arguments
                return []
            case e.ToolCompleted():
                return self._tool_ended(event)
            case e.JobParked():
                self._parked = self._open
                return self._finish()
            case e.JobResumed():
                return self._resume()
            case e.JobCompleted() | e.JobFailed() | e.JobCancelled():
                return self._finish()
            case _:
                return []

    def hear(self, told: CallProgress, *, step: int) -> Progress | None:
        """Return the progress of which a tool tells; None: its step is not under way any more."""
        if self._open is None or step != self._step or not self._wanted or self._open.state == "observing_results":
            return None
        of = "" if told.total is None else f" of {told.total:g}"
        how_far = f"{told.message} ({told.progress:g}{of})" if told.message else f"{told.progress:g}{of}"
        return self._open.model_copy(update={"phase": "running", "message": f"{told.tool}: {how_far}"})

    def _answered(self, event: e.ModelCompleted) -> list[Progress]:
        calls = event.message.tool_calls
        if not calls:
            return self._begin("generating_response")
        self._arguments, self._ended = {}, {}
        self._wanted = {c.call: str(c.arguments.get("name", c.tool)) if c.tool == USE_TOOL else c.tool for c in calls}
        states: set[ProgressState] = {tool_state(tool) for tool in self._wanted.values()}
        state: ProgressState = states.pop() if len(states) == 1 else "executing_tools"
        return self._begin(state, total=len(calls))

    def _tool_ended(self, event: e.ToolCompleted) -> list[Progress]:
        if event.call not in self._wanted:
            # A call of a program: its step is over when the program is.
            return []
        tool, arguments = self._arguments.get(event.call, (event.tool, {}))
        ok = event.status == "success"
        content = event.error.message if event.error else event.content if event.full is None else event.full
        self._ended[event.call] = _Ended(tool, ok, observation(tool, arguments, content, failed=not ok))
        if len(self._ended) < len(self._wanted):
            return []
        done = [one for _, one in sorted(self._ended.items(), key=lambda pair: (len(pair[0]), pair[0]))]
        good, observed = sum(one.ok for one in done), joined(one.observed for one in done)
        finished = self._finish(message=observed, ok=good)
        return [*finished, *self._begin("observing_results", message=observed, ok=good, total=len(done))]

    def _begin(
        self, state: ProgressState, *, message: str = "", ok: int | None = None, total: int | None = None
    ) -> list[Progress]:
        before = self._finish()
        self._open = Progress(
            state=state,
            phase="started",
            message=message or MESSAGES[state],
            iteration=self._step,
            of=self._steps_max,
            tools=() if total is None else tuple(self._wanted.values()),
            ok=ok,
            total=total,
        )
        return [*before, self._open]

    def _resume(self) -> list[Progress]:
        """Begin again what was under way when the job parked."""
        self._open, self._parked = self._parked, None
        return [] if self._open is None else [self._open]

    def _finish(self, **known: object) -> list[Progress]:
        if self._open is None:
            return []
        finished = self._open.model_copy(update={"phase": "completed", **known})
        self._open = None
        return [finished]
