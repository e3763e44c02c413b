"""What a model is sent: append-only, so that each prompt begins with the whole of the one before and stays cached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, NamedTuple

from wayline.contracts.base import slim
from wayline.contracts.chat import NO_TEXT, Attachment, ChatMessage, Part, UserMessage
from wayline.contracts.events import Segment
from wayline.contracts.ids import RECENT
from wayline.contracts.tools import ToolDefinition
from wayline.journal import Job
from wayline.llm import ModelRequest, media
from wayline.llm.deferred import loaded_tokens
from wayline.llm.tokens import BYTES_PER_TOKEN, weight
from wayline.routing import system_prompt

HASH_BYTES = 16
HEADS_MAX = 256
"""Sets of tools and system prompts whose hashes are kept; each holds what it is the hash of."""
SYSTEM_BREAKPOINTS = 1
"""Of the breakpoints that a provider allows, how many stand after the tools and the system prompt."""


class Prompt(NamedTuple):
    """One prompt, in the order in which providers cache it: tools, system, messages."""

    tools: tuple[ToolDefinition, ...]
    system: str
    messages: tuple[ChatMessage, ...]
    breakpoints: tuple[int, ...]
    cache_key: str
    attachments: Mapping[str, Attachment]
    """What its messages name, by document id."""


def assemble(job: Job, tools: tuple[ToolDefinition, ...] | None = None) -> Prompt:
    """Return the job's next prompt, from its state alone; `tools` where its first call has not fixed them yet.

    Nothing here depends on when or where it runs, and nothing is spliced in: what changes is appended to the log first.
    """
    assert job.routing.config is not None and job.life.submitted is not None
    pinned = job.routing.config.pinned
    messages = (pinned_message(pinned), *job.conversation.steered) if pinned else job.conversation.steered
    at_most = job.routing.card.cache.breakpoints_max - SYSTEM_BREAKPOINTS
    return Prompt(
        tools=(job.tools.offered if tools is None else tools) or (),
        system=system_prompt(job.routing.config),
        messages=messages,
        breakpoints=breakpoints(messages, at_most=at_most, pinned=bool(pinned)),
        cache_key=cache_key(job.tenant, job.life.submitted.agent, job.routing.agent_version or 0),
        attachments={attachment.document_id: attachment for attachment in job.conversation.attachments},
    )


@lru_cache(RECENT)
def pinned_message(parts: tuple[Part, ...]) -> UserMessage:
    """Return an agent's pinned documents as the first message of its jobs: no provider takes images in a system prompt.

    The same object each time, because `PromptHashes` knows messages by identity.
    """
    return UserMessage(parts=parts)


def breakpoints(messages: Sequence[ChatMessage], *, at_most: int, pinned: bool = False) -> tuple[int, ...]:
    """Return the messages after which the prefix is marked, dearest first where there is no room for all three.

    The last message: what this call writes. The last message of the call that was answered before: exactly the entry
    that call wrote, so it is found however many blocks came since, where a lookback from the end alone would miss it
    after more than twenty. The first message: what is left when the others have expired or were compacted away, and of
    `pinned` documents what all jobs of their agent share.
    """
    last = answered = len(messages) - 1
    while answered > 0 and messages[answered].role != "assistant":
        answered -= 1
    if answered > 0:
        wanted = [last, answered - 1, 0]
    elif pinned:
        wanted = [last, 0]
    else:
        wanted = [last]
    return tuple(sorted({*wanted[: max(0, at_most)]}))


@lru_cache(RECENT)
def cache_key(tenant: str, agent: str, version: int) -> str:
    """Return the key of all jobs that share tools and system prompt; it does not tell whose they are."""
    return _hash(f"wayline/prompt/{tenant}/{agent}/{version}".encode()).hex()


class PromptHashes:
    """The hashes of one job's messages, each hashed once: the same object has the same hash.

    By identity, not by place: a message that was edited is another object, and that is what must show. Tools and system
    prompt are the same for many jobs, and hashed once for all of them.
    """

    __slots__ = ("_hashes", "_messages", "_sizes")

    def __init__(self) -> None:
        self._messages: list[ChatMessage] = []
        self._hashes: list[bytes] = []
        self._sizes: list[int] = [0]
        """Bytes of all messages before each place."""

    def segments(self, prompt: Prompt | ModelRequest) -> tuple[Segment, ...]:
        """Return what a prompt is made of, for the log: as long for the three hundredth call as for the first."""
        self._read(prompt.messages, prompt.attachments)
        beside = 0
        if isinstance(prompt, ModelRequest):
            named = media.named(prompt.messages, prompt.attachments)
            beside = sum(media.tokens(prompt.card, attachment) for attachment in named)
            beside += media.returned_tokens(prompt.card, prompt.messages, prompt.attachments)
            beside += loaded_tokens(prompt)
        messages = _segment("messages", self._hashes, self._sizes[-1], beside=beside)
        return _tool_segment(prompt.tools), _system_segment(prompt.system), messages

    def hash_of(self, count: int) -> str:
        """Return the hash of the first so many messages of the prompt that was read last, or of all it has."""
        return _joined(self._hashes[:count])

    def _read(self, messages: Sequence[ChatMessage], attachments: Mapping[str, Attachment]) -> None:
        same = 0
        for known, message in zip(self._messages, messages, strict=False):
            if known is not message:
                break
            same += 1
        del self._messages[same:], self._hashes[same:], self._sizes[same + 1 :]
        for message in messages[same:]:
            encoded = _encoded(message, attachments)
            self._messages.append(message)
            self._hashes.append(_hash(encoded))
            self._sizes.append(self._sizes[-1] + weight(encoded))


_TOOLS: dict[tuple[int, ...], tuple[tuple[ToolDefinition, ...], Segment]] = {}
"""By the identity of every tool; each entry holds its tools, so that no other can come to have their identities."""


def _tool_segment(tools: tuple[ToolDefinition, ...]) -> Segment:
    same = tuple(map(id, tools))
    known = _TOOLS.get(same)
    if known is None:
        if len(_TOOLS) >= HEADS_MAX:
            del _TOOLS[next(iter(_TOOLS))]
        encoded = [_offered(tool) for tool in tools]
        known = _TOOLS[same] = tools, _segment("tools", [*map(_hash, encoded)], sum(map(weight, encoded)))
    return known[1]


@lru_cache(HEADS_MAX)
def _system_segment(system: str) -> Segment:
    encoded = system.encode()
    return _segment("system", [_hash(encoded)], weight(encoded))


def _segment(
    part: Literal["tools", "system", "messages"], hashes: Sequence[bytes], size: int, *, beside: int = 0
) -> Segment:
    """Make a segment of so many bytes of text, and of what takes so many tokens `beside` it."""
    segment = Segment(part=part, hash=_joined(hashes), count=len(hashes), tokens=size // BYTES_PER_TOKEN + beside)
    # It is held until the next call, to be compared with its like.
    slim(segment)
    return segment


def _joined(hashes: Sequence[bytes]) -> str:
    return _hash(b"".join(hashes)).hex()


def _encoded(message: ChatMessage, attachments: Mapping[str, Attachment]) -> bytes:
    # Of images their hashes: what they take of a prompt is counted by rules of its own.
    # Without defaults: a field that a newer build adds leaves the hashes of older messages as they are.
    encoded = message.role.encode() + message.__pydantic_serializer__.to_json(
        message, exclude=NO_TEXT, exclude_defaults=True
    )
    if not attachments:
        return encoded
    # A document's id does not say which bytes are sent.
    return encoded + b"".join(attachment.sha256.encode() for attachment in media.named((message,), attachments))


def _offered(tool: ToolDefinition) -> bytes:
    return tool.__pydantic_serializer__.to_json(tool, include={"name", "description", "input_schema"})


def _hash(text: bytes) -> bytes:
    return blake2b(text, digest_size=HASH_BYTES).digest()
