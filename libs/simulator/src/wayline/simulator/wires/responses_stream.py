"""OpenAI's Responses as a stream of events."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import orjson

from wayline.simulator.wires.replies import Part, Reply, pieces
from wayline.simulator.wires.responses import content, item, item_id, response
from wayline.simulator.wires.writing import Frame

ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


def frames(reply: Reply) -> Iterator[Frame]:
    """Yield the answer, event by event, numbered."""
    numbers = itertools.count()
    for name, value, part, text, unseen in _events(reply):
        data = orjson.dumps({"type": name, **value, "sequence_number": next(numbers)})
        final = name in ENDS and not reply.fault.no_usage
        event = b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
        yield Frame(event, part=part, text=text, unseen=unseen, usage=final)


def trouble(number: int) -> bytes:
    """Make the error event that ends a stream whose status was 200."""
    message = "The server is currently overloaded. Please try again later."
    error = {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": number}
    return b"event: error\ndata: " + orjson.dumps(error) + b"\n\n"


Event = tuple[str, dict[str, Any], int, str, str]
"""Name, value, which part of the reply, which of its words are shown, and which are not."""


def _events(reply: Reply) -> Iterator[Event]:
    begun = response(reply, output=[], ended=False, streamed=True)
    yield "response.created", {"response": begun}, 0, "", ""
    yield "response.in_progress", {"response": begun}, 0, "", ""
    done: list[dict[str, Any]] = []
    for at, part in enumerate(reply.parts):
        whole = item(reply, at, part, summary=reply.say.summarised)
        # Thinking that is not shown has been done, and is charged for, once its item begins.
        hidden = part.text if part.kind == "thinking" and not reply.prompt.shows_thinking else ""
        yield "response.output_item.added", {"output_index": at, "item": _begun(whole)}, at, part.name, hidden
        # A search for tools comes in one piece.
        for name, value, piece in _within(reply, at, part) if whole["type"] != "tool_search_call" else ():
            yield name, {"item_id": item_id(reply, at, part), "output_index": at, **value}, at, piece, ""
        yield "response.output_item.done", {"output_index": at, "item": whole}, at, "", ""
        done.append(whole)
    ended = response(reply, output=done, ended=True, streamed=True)
    yield f"response.{ended['status']}", {"response": ended}, 0, "", ""


def _begun(whole: dict[str, Any]) -> dict[str, Any]:
    begun = dict(whole)
    if "status" in begun:
        begun["status"] = "in_progress"
    if "arguments" in begun:
        begun["arguments"] = "" if begun["type"] == "function_call" else {}
    for name in ("content", "summary"):
        if name in begun:
            begun[name] = []
    return begun


def _within(reply: Reply, at: int, part: Part) -> Iterator[tuple[str, dict[str, Any], str]]:
    if part.kind == "call":
        for piece in pieces(part.text):
            yield "response.function_call_arguments.delta", {"delta": piece}, piece
        yield "response.function_call_arguments.done", {"arguments": part.text}, ""
    elif part.kind == "text":
        yield from _text(reply, part)
    elif reply.prompt.shows_thinking and reply.say.summarised:
        yield from _summary(part)
    elif reply.prompt.shows_thinking:
        yield "response.content_part.added", {"content_index": 0, "part": {"type": "reasoning_text", "text": ""}}, ""
        for piece in pieces(part.text):
            yield "response.reasoning_text.delta", {"content_index": 0, "delta": piece}, piece
        yield "response.reasoning_text.done", {"content_index": 0, "text": part.text}, ""
        whole = {"type": "reasoning_text", "text": part.text}
        yield "response.content_part.done", {"content_index": 0, "part": whole}, ""


def _text(reply: Reply, part: Part) -> Iterator[tuple[str, dict[str, Any], str]]:
    place = {"content_index": 0}
    yield "response.content_part.added", {**place, "part": content(reply, "")}, ""
    if reply.stop == "refused":
        for piece in pieces(part.text):
            yield "response.refusal.delta", {**place, "delta": piece}, piece
        yield "response.refusal.done", {**place, "refusal": part.text}, ""
    else:
        for piece in pieces(part.text):
            yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}, piece
        yield "response.output_text.done", {**place, "text": part.text, "logprobs": []}, ""
    yield "response.content_part.done", {**place, "part": content(reply, part.text)}, ""


def _summary(part: Part) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a summary as OpenAI documents it; no recording has one."""
    place = {"summary_index": 0}
    yield "response.reasoning_summary_part.added", {**place, "part": {"type": "summary_text", "text": ""}}, ""
    for piece in pieces(part.text):
        yield "response.reasoning_summary_text.delta", {**place, "delta": piece}, piece
    yield "response.reasoning_summary_text.done", {**place, "text": part.text}, ""
    whole = {"type": "summary_text", "text": part.text}
    yield "response.reasoning_summary_part.done", {**place, "part": whole}, ""
