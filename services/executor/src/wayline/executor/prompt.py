"""What a model is sent: append-only, so that each prompt begins with the whole of the one before and stays cached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from wayline.contracts.chat import AssistantMessage, ChatMessage
from wayline.contracts.events import Segment
from wayline.contracts.ids import RECENT
from wayline.contracts.tools import ToolDefinition
from wayline.journal import Job
from wayline.llm.tokens import BYTES_PER_TOKEN

HASH_BYTES = 16
SYSTEM_BREAKPOINTS = 1
"""Of the breakpoints that a provider allows, how many stand after the tools and the system prompt."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt, in the order in which providers cache it: tools, system, messages."""

    tools: tuple[ToolDefinition, ...]
    system: str
    messages: tuple[ChatMessage, ...]
    breakpoints: tuple[int, ...]
    cache_key: str


def assemble(job: Job, tools: tuple[ToolDefinition, ...] | None = None) -> Prompt:
    """The job's next prompt, from its state alone; `tools` where its first call has not fixed them yet.

    Nothing here depends on when or where it runs, and nothing is spliced in: what changes is appended to the log first.
    """
    assert job.config is not None and job.submitted is not None
    return Prompt(
        tools=(job.tools if tools is None else tools) or (),
        system=job.config.instructions,
        messages=job.messages,
        breakpoints=breakpoints(job.messages, at_most=job.card.cache.breakpoints_max - SYSTEM_BREAKPOINTS),
        cache_key=cache_key(job.tenant, job.submitted.agent, job.agent_version or 0),
    )


def breakpoints(messages: Sequence[ChatMessage], *, at_most: int) -> tuple[int, ...]:
    """The messages after which the prefix is marked, dearest first when there is not room for all three.

    The last message: what this call writes. The last message of the call that was answered before: exactly the entry
    that call wrote, so it is found however many blocks came since, where a lookback from the end alone would miss it
    after more than twenty. The user's first message: what is left when the others have expired or were compacted away.
    """
    last = len(messages) - 1
    answered = next((n for n in range(last, 0, -1) if isinstance(messages[n], AssistantMessage)), None)
    wanted = [last] if answered is None else [last, answered - 1, 0]
    return tuple(sorted(dict.fromkeys(wanted[: max(0, at_most)])))


@lru_cache(RECENT)
def cache_key(tenant: str, agent: str, version: int) -> str:
    """The same for all jobs that share tools and system prompt, and telling nobody whose they are."""
    return _hash([f"wayline/prompt/{tenant}/{agent}/{version}".encode()])


class _Print(NamedTuple):
    """A message or tool by its hash."""

    hash: bytes
    size: int


class Prints:
    """The hashes of one job's prompts, each part hashed once: the same object has the same hash.

    By identity, not by place: a message that was edited is another object, and that is what must show.
    """

    def __init__(self) -> None:
        self._messages: list[tuple[ChatMessage, _Print]] = []
        self._tools: tuple[tuple[ToolDefinition, ...], Segment] | None = None
        self._system: tuple[str, Segment] | None = None

    def segments(self, prompt: Prompt) -> tuple[Segment, ...]:
        """What a prompt is made of, for the log: as long for the three hundredth call as for the first."""
        return self._tool_segment(prompt.tools), self._system_segment(prompt.system), self.first(prompt.messages)

    def first(self, messages: Sequence[ChatMessage], count: int | None = None) -> Segment:
        """The first so many messages, or all, as one segment."""
        prints = self._of(messages)[:count]
        return _segment_of("messages", prints)

    def _of(self, messages: Sequence[ChatMessage]) -> list[_Print]:
        known = self._messages
        same = 0
        while same < min(len(known), len(messages)) and known[same][0] is messages[same]:
            same += 1
        known[same:] = [(message, _print(_said(message))) for message in messages[same:]]
        return [found for _, found in known]

    def _tool_segment(self, tools: tuple[ToolDefinition, ...]) -> Segment:
        if self._tools is None or self._tools[0] is not tools:
            self._tools = tools, _segment_of("tools", [_print(_offered(tool)) for tool in tools])
        return self._tools[1]

    def _system_segment(self, system: str) -> Segment:
        if self._system is None or self._system[0] is not system:
            self._system = system, _segment_of("system", [_print(system.encode())])
        return self._system[1]


def _segment_of(part: str, prints: Sequence[_Print]) -> Segment:
    return Segment.model_construct(
        part=part,
        hash=_hash(found.hash for found in prints),
        count=len(prints),
        tokens=sum(found.size for found in prints) // BYTES_PER_TOKEN,
    )


def _said(message: ChatMessage) -> bytes:
    # Without defaults: a field that a newer build adds leaves the hashes of older messages as they are.
    return message.role.encode() + message.__pydantic_serializer__.to_json(message, exclude_defaults=True)


def _offered(tool: ToolDefinition) -> bytes:
    return tool.__pydantic_serializer__.to_json(tool, include={"name", "description", "input_schema"})


def _print(text: bytes) -> _Print:
    return _Print(blake2b(text, digest_size=HASH_BYTES).digest(), len(text))


def _hash(parts: Iterable[bytes]) -> str:
    return blake2b(b"".join(parts), digest_size=HASH_BYTES).hexdigest()
