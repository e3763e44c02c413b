"""The request that a script is given and the reply that it returns: the same for every wire format."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from wayline.simulator.scripts.faults import NO_FAULT, Fault

Wire = Literal["anthropic", "openai", "openai_chat", "embeddings"]
SENT = re.compile(r"\n*Sent on \d{4}-\d\d-\d\d, a \w+, at \d\d:\d\d UTC\.\s*$")
LABELLED = re.compile(r"\[[A-Z][A-Z ]*\]")
Stop = Literal["end", "tools", "max_tokens", "stop_sequence", "refused"]


@dataclass(frozen=True)
class Offered:
    """A tool that the model may call."""

    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """One message of the conversation; a tool's result is a turn of its own."""

    role: Literal["user", "assistant", "tool", "system"]
    text: str = ""
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    """Of a tool's turn: the call that it answers."""
    tool: str = ""
    failed: bool = False

    @property
    def asks(self) -> bool:
        """Return whether the user speaks: what a platform adds in the user's name is labelled, `[CONTEXT] …`."""
        return self.role == "user" and bool(self.text) and LABELLED.match(self.text) is None


@dataclass(frozen=True)
class Asked:
    """A request, decoded: whichever wire format it came in."""

    number: int
    """Its place among the requests, from 1."""
    attempt: str
    """`X-Wayline-Attempt`, or empty."""
    wire: Wire
    model: str
    body: dict[str, Any] = field(repr=False)
    system: str = ""
    turns: tuple[Turn, ...] = ()
    tools: tuple[Offered, ...] = ()
    schema: dict[str, Any] | None = None
    """What the final answer has to satisfy."""
    thinks: bool = False
    stream: bool = False
    output_limit: int | None = None
    speaks_json: bool = False
    """Whether the model has no tools of its own, and the system prompt asks for the JSON protocol."""

    @property
    def text(self) -> str:
        """Return what the user said last, without the line that says when."""
        text = next((turn.text for turn in reversed(self.turns) if turn.asks), "")
        return SENT.sub("", text)

    @property
    def results(self) -> tuple[Turn, ...]:
        """Return the tool results since the user last spoke."""
        found: list[Turn] = []
        for turn in reversed(self.turns):
            if turn.asks:
                break
            if turn.role == "tool":
                found.append(turn)
        return tuple(reversed(found))


@dataclass(frozen=True)
class Say:
    """One reply. In the JSON protocol it is put into the envelope, unless it is `raw`."""

    text: str = ""
    tools: tuple[tuple[str, dict[str, Any] | str], ...] = ()
    """Names and arguments; arguments given as a string go out as they are."""
    thinking: str = ""
    value: Any = None
    """Structured output: said as JSON in place of the text."""
    stop: Stop | None = None
    confidence: float = 0.9
    raw: bool = False
    output_tokens: int | None = None
    """Count and bill so many, whatever the reply's length."""
    summarised: bool = False
    """Responses: stream the thinking as a summary, in the events that OpenAI documents; else as `reasoning_text`."""
    fault: Fault = NO_FAULT


Script = Callable[[Asked], Say | Awaitable[Say]]
"""What to say to a request. It must depend on the request alone, or the run is not repeatable."""


def turns(*says: Say) -> Script:
    """Make a script for one conversation: the n-th reply answers the request with n-1 assistant messages in it."""

    def script(asked: Asked) -> Say:
        answered = sum(turn.role == "assistant" for turn in asked.turns)
        return says[min(answered, len(says) - 1)]

    return script


def rounds(*says: Say) -> Script:
    """Make a script for one agent's job: the n-th reply comes after n-1 rounds of tools, whatever else was injected."""

    def script(asked: Asked) -> Say:
        done = sum(bool(turn.calls) for turn in asked.turns)
        return says[min(done, len(says) - 1)]

    return script
