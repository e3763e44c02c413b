"""The wire formats: how each reads a request and writes an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from wayline.simulator.models import Facts, Provider
from wayline.simulator.request import Envelope
from wayline.simulator.scripts.script import Wire
from wayline.simulator.wires import chat, embeddings, messages, responses, responses_stream
from wayline.simulator.wires.replies import Prompt, Reply
from wayline.simulator.wires.writing import Frame


@dataclass(frozen=True, slots=True)
class Format:
    """A wire format: how it reads, and how it writes."""

    wire: Wire
    providers: tuple[Provider, ...]
    """Whose models it serves."""
    read: Callable[[Mapping[str, Any], Facts, Envelope], Prompt]
    body: Callable[[Reply], dict[str, Any]]
    frames: Callable[[Reply], Iterator[Frame]]
    trouble: Callable[[int], bytes]


MESSAGES = Format("anthropic", ("anthropic",), messages.read, messages.body_of, messages.frames, messages.trouble)
RESPONSES = Format(
    "openai", ("openai",), responses.read, responses.body_of, responses_stream.frames, responses_stream.trouble
)
CHAT = Format("openai_chat", ("openai", "google", "local"), chat.read, chat.body_of, chat.frames, chat.trouble)
EMBEDDINGS = Format("embeddings", ("openai", "local"), embeddings.read, embeddings.body_of, chat.frames, chat.trouble)


def frames_of(form: Format, reply: Reply) -> Iterator[Frame]:
    """Yield the body in pieces: a stream's events, or all of it at once."""
    if reply.prompt.asked.stream:
        return form.frames(reply)
    text = "".join(part.name + part.text for part in reply.parts)
    return iter([Frame(orjson.dumps(form.body(reply)), text=text, usage=not reply.fault.no_usage)])
