"""What a job does right now, from its log, in the nine states of the API's `progress` events. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MESSAGES: Final = {
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
"""Each state, and what is said of it while no event has said more."""
USE_TOOL: Final = "use_tool"
"""The tool by which a model calls one that it found: what is called is its argument."""
_MEMORY: Final = frozenset({"memory", "memories", "remember", "forget"})
_SAVING: Final = frozenset({"save", "store", "add", "write", "create", "update", "delete", "remember", "forget"})
_FETCH: Final = frozenset({"fetch", "crawl", "scrape", "browse"})
_PAGES: Final = frozenset({"page", "pages", "url", "urls", "website"})
_READING: Final = frozenset({"read", "get", "open", "load"})
_SEARCH: Final = frozenset({"search", "find", "query", "lookup"})
_WEB: Final = frozenset({"web", "internet", "online", "google", "bing", "brave", "tavily", "duckduckgo", "serp", "exa"})


@dataclass(frozen=True, slots=True)
class ShownProgress:
    """One of the nine states, and the step that it is of."""

    state: str
    step: int = 0
    """From 1; 0: none has begun."""
    of: int | None = None
    """The steps that the job may take."""
    message: str = ""

    @property
    def key(self) -> str:
        """Name the state of this step: what the API says of the same one says more."""
        return f"{self.step}/{self.state}"

    @property
    def words(self) -> str:
        """Return it as it is read: `Step 2 of 5: Searching the web`."""
        message = self.message or MESSAGES.get(self.state, self.state.replace("_", " "))
        of = f" of {self.of}" if self.of else ""
        return f"Step {self.step}{of}: {message}" if self.step else message


def told_progress(event: Mapping[str, Any]) -> ShownProgress | None:
    """Return what a `progress` event of the API begins or goes on with; None: it ends something."""
    if event.get("phase") == "completed":
        return None
    return ShownProgress(event["state"], event.get("iteration") or 0, event.get("of"), event.get("message") or "")


def queue_words(event: Mapping[str, Any]) -> str:
    """Return a `queue` event of the API as it is read."""
    return f"Number {event['position']:,} of {event['queued']:,} in the queue {event['lane']}"


def progress_of(events: Sequence[Mapping[str, Any]]) -> ShownProgress | None:
    """Return what a job does after these events of its log; None: nothing, as it waits or has ended."""
    state, parked, of, step = None, None, None, 0
    wanted, over = set[str](), set[str]()
    for event in events:
        match event["type"]:
            case "job.submitted":
                state = "analyzing"
            case "job.routed":
                of = (event.get("limits") or {}).get("max_steps")
            case "model.requested":
                state, step = "reasoning", event["step"]
            case "model.completed":
                calls = event["message"]["tool_calls"]
                wanted, over = {call["call"] for call in calls}, set()
                state = _state_of(calls) if calls else "generating_response"
            case "tool.completed" if event["call"] in wanted:
                over.add(event["call"])
                state = "observing_results" if over == wanted else state
            case "job.parked":
                parked, state = state, None
            case "job.resumed":
                parked, state = None, parked
            case "job.completed" | "job.failed" | "job.cancelled":
                state = None
            case _:
                pass
    return ShownProgress(state, step, of) if state else None


def _state_of(calls: Iterable[Mapping[str, Any]]) -> str:
    states = {tool_state(_called(call)) for call in calls}
    return states.pop() if len(states) == 1 else "executing_tools"


def _called(call: Mapping[str, Any]) -> str:
    return str(call["arguments"].get("name", USE_TOOL)) if call["tool"] == USE_TOOL else call["tool"]


def tool_state(tool: str) -> str:
    """Return what a job does while it waits for a tool, by the words of the tool's name, as the API tells it."""
    name = tool.rpartition("__")[2]
    words = frozenset(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))
    if words & _MEMORY:
        return "saving_memory" if words & _SAVING else "retrieving_memory"
    if words & _FETCH or (words & _PAGES and words & _READING):
        return "fetching_content"
    return "searching_web" if words & _SEARCH and words & _WEB else "executing_tools"
