"""A history cut into turns, as providers want it: each call of a tool with its result, each id used once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from wayline.contracts.chat import (
    AssistantMessage,
    ChatMessage,
    NoteMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    Verbatim,
)

ID_MAX_CHARS = 64
NO_RESULT = "(this call was never answered)"
UNNAMED = "unnamed"
NO_ANSWER = "(no answer)"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a call; without a message, nothing did."""

    id: str
    index: int
    message: ToolMessage | None


Other = tuple[int, UserMessage | NoteMessage | ToolMessage]
"""A message with its place in the history. A tool's result is one where no call asks for it."""


@dataclass(frozen=True, slots=True)
class Input:
    """What the model is given before it answers, results first: providers want them there."""

    results: list[Result] = field(default_factory=list)
    others: list[Other] = field(default_factory=list)

    @property
    def closing(self) -> list[Other]:
        """Return our own notes that it ends with, if anything comes before them: where system messages may stand."""
        notes = list(takewhile(lambda other: is_ours(other[1]), reversed(self.others)))
        return notes[::-1] if self.results or len(notes) < len(self.others) else []


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's answer, and the id that each of its calls has on the wire."""

    index: int
    message: AssistantMessage
    ids: tuple[str, ...]
    echoed: bool
    """Whether its provider's own blocks are sent back."""


def plain(wire_id: str) -> str:
    """Return an id in the characters that every provider accepts."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", wire_id)[:ID_MAX_CHARS]


def called_name(tool: str) -> str:
    """Return the name of a tool that a model called as every provider takes it back: models invent names."""
    return plain(tool) or UNNAMED


def turns(
    messages: Sequence[ChatMessage], *, echoes: Callable[[Verbatim], bool], fit: Callable[[str], str] = plain
) -> list[Input | Answer]:
    """Pair and group; what is added to a history later never changes the turns that were answered before.

    `fit`: a provider's id in the form that this wire takes.
    """
    found: list[Input | Answer] = []
    seen: set[str] = set()
    heard, asked = Input(), dict[str, str]()
    for index, message in enumerate(messages):
        # By its role, not by `isinstance`, which pydantic answers in Python for whatever is not of the very class.
        if message.role == "assistant":
            _close(found, heard, asked)
            echoed = message.verbatim is not None and echoes(message.verbatim)
            ids = tuple([_id(c, index, seen, fit=None if echoed else fit) for c in message.tool_calls])
            answer = Answer(index, message, ids, echoed)
            found.append(answer)
            heard, asked = Input(), dict(zip((c.call for c in message.tool_calls), answer.ids, strict=True))
        elif message.role == "tool" and (wire_id := asked.pop(message.call, None)):
            heard.results.append(Result(wire_id, index, message))
        else:
            heard.others.append((index, message))
    _close(found, heard, asked)
    return found


def is_ours(message: ChatMessage) -> bool:
    """Return whether a message may travel with the operator's role: a note that repeats no other words than ours."""
    return isinstance(message, NoteMessage) and not message.quoted


def label(note: NoteMessage) -> str:
    """Return a note as models read it."""
    return f"[{note.label}]\n{note.text}"


def orphan_result(result: ToolMessage) -> str:
    """Return a result as text, for a history whose call is gone."""
    return f"[RESULT OF {result.tool}]\n{result.content}"


def asides(message: UserMessage) -> str | None:
    """Return what a model is told beside the user's own words; None if nothing."""
    return "\n\n".join(message.asides) or None


def echo(answer: Answer, *, is_call: Callable[[dict[str, Any]], bool], id_field: str) -> list[dict[str, Any]]:
    """Return an answer in its provider's own blocks, its calls under their ids, and under names that can be ones.

    Models invent names, and endpoints number their calls anew in each answer or not at all; none takes that back.
    """
    verbatim, ids = answer.message.verbatim, iter(answer.ids)
    if not answer.echoed or verbatim is None:
        return []
    return [_renamed(block, id_field, next(ids, "")) if is_call(block) else block for block in verbatim.blocks]


def _renamed(block: dict[str, Any], id_field: str, wire_id: str) -> dict[str, Any]:
    named = {"name": called_name(str(block["name"] or ""))} if "name" in block else {}
    return {**block, id_field: wire_id or block.get(id_field), **named}


def _close(found: list[Input | Answer], heard: Input, asked: dict[str, str]) -> None:
    asker = found[-1] if asked else None
    if isinstance(asker, Answer):
        heard.results.extend(Result(wire_id, asker.index, None) for wire_id in asked.values())
    if heard.results or heard.others:
        found.append(heard)


def _id(call: ToolCall, index: int, seen: set[str], *, fit: Callable[[str], str] | None) -> str:
    """Return the call's id on the wire; without `fit` in the provider's own characters."""
    found = (fit or str)(call.provider_id or "")
    # Some endpoints number their calls anew in each answer, where others refuse an id they have seen.
    if not found or found in seen:
        found = plain(f"call_{index}_{call.call}")
    seen.add(found)
    return found
