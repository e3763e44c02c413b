"""A prompt as it was read, and a script's words made into a reply with ids and usage."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import orjson

from wayline.contracts.money import Usage
from wayline.simulator.models import Facts
from wayline.simulator.prompt.blocks import Block
from wayline.simulator.prompt.cache import Plan
from wayline.simulator.prompt.counting import BLOCK_TOKENS, TOKEN_BYTES, block_tokens
from wayline.simulator.scripts.faults import Fault
from wayline.simulator.scripts.protocol import in_envelope
from wayline.simulator.scripts.script import Asked, Say, Stop

PIECE_CHARS = 24
"""How much of a reply one stream event carries."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request that is accepted."""

    asked: Asked
    facts: Facts
    blocks: tuple[Block, ...]
    settings: bytes = b""
    """What Anthropic's kept messages depend on beside the blocks."""
    cache_key: str = ""
    implicit_cache: bool = True
    cache_ttl: str = "30m"
    shows_thinking: bool = True
    hands_back_thinking: bool = True
    """Whether thinking is sent in a form that can come back."""


@dataclass(frozen=True, slots=True)
class Part:
    """One block of a reply."""

    kind: Literal["thinking", "text", "call"]
    text: str
    """Of a call: its arguments."""
    id: str = ""
    name: str = ""

    @property
    def tokens(self) -> int:
        return block_tokens(self.name + self.text)


@dataclass(frozen=True, slots=True)
class Reply:
    """All of an answer, before a wire format writes it."""

    prompt: Prompt
    say: Say
    fault: Fault
    parts: tuple[Part, ...]
    stop: Stop
    plan: Plan
    usage: Usage
    at_s: int
    """The provider's time."""

    @property
    def id(self) -> str:
        return f"{self.prompt.asked.number:08d}"

    @property
    def failed(self) -> bool:
        """Return whether it ends as a failure, with its usage: only Responses has a form for that."""
        return self.fault.fails_at_end and self.prompt.asked.wire == "openai"


def compose(prompt: Prompt, say: Say, plan: Plan, *, fault: Fault, at_s: int) -> Reply:
    """Make a reply of what the script said."""
    if prompt.asked.speaks_json and not say.raw:
        say = in_envelope(say)
    parts = tuple(_parts(prompt, say, fault))
    prewarmed = prompt.asked.output_limit == 0
    if prewarmed:
        parts = ()
    whole = parts
    if say.output_tokens is None and prompt.asked.output_limit:
        parts = tuple(_within(whole, prompt.asked.output_limit))
    calls = any(part.kind == "call" for part in parts)
    cut = prewarmed or parts != whole
    stop = say.stop or ("max_tokens" if cut else "tools" if calls else "end")
    output = sum(part.tokens for part in parts) if say.output_tokens is None else say.output_tokens
    reasoning = min(output, sum(part.tokens for part in parts if part.kind == "thinking"))
    usage = Usage(
        input=plan.input,
        cache_read=plan.read,
        cache_write_5m=plan.write_short,
        cache_write_1h=plan.write_long,
        output=output,
        reasoning=reasoning,
    )
    return Reply(prompt, say, fault, parts, stop, plan, usage, at_s)


def _within(parts: Iterable[Part], limit: int) -> Iterator[Part]:
    """Cut a reply to the request's output limit: thinking is output like the rest, and comes first."""
    for part in parts:
        if part.tokens > limit:
            room = (limit - BLOCK_TOKENS) * TOKEN_BYTES - len(part.name.encode())
            if room > 0:
                yield replace(part, text=part.text.encode()[:room].decode(errors="ignore"))
            return
        yield part
        limit -= part.tokens


def pieces(text: str) -> Iterator[str]:
    """Yield a text in the pieces of a stream; an empty one is one piece."""
    for at in range(0, max(len(text), 1), PIECE_CHARS):
        yield text[at : at + PIECE_CHARS]


def _parts(prompt: Prompt, say: Say, fault: Fault) -> Iterator[Part]:
    thinks = prompt.asked.thinks and say.thinking
    if thinks:
        yield Part("thinking", say.thinking)
    text = say.text if say.value is None else json.dumps(say.value, ensure_ascii=False)
    if text or not (say.tools or thinks):
        yield Part("text", text)
    for at, (name, arguments) in enumerate(say.tools, 1):
        written = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
        call_id = f"{prompt.asked.number:08d}x{at:02d}"
        yield Part("call", _spoiled(written, fault), id=call_id, name=name)


def _spoiled(arguments: str, fault: Fault) -> str:
    if fault.unfinished_arguments:
        return arguments[:-1]
    return f"{arguments[:-1]},}}" if fault.malformed_arguments else arguments
