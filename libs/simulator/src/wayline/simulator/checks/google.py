"""What Google's Chat Completions endpoint refuses: it reads its own fields and no others, wherever they stand."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from typing import Any

from wayline.simulator.refusals import Refusal, unknown_names
from wayline.simulator.request import Body

KNOWN: dict[str, frozenset[str]] = {
    "request": frozenset(
        "extra_body max_completion_tokens max_tokens messages model n parallel_tool_calls reasoning_effort "
        "response_format stop stream stream_options temperature tool_choice tools top_p".split()
    ),
    "message": frozenset("content extra_content name role tool_call_id tool_calls".split()),
    "part": frozenset("image_url input_audio text type".split()),
    "image": frozenset("detail url".split()),
    "call": frozenset("extra_content function id index type".split()),
    "called": frozenset("arguments name".split()),
    "tool": frozenset("function type".split()),
    "function": frozenset("description name parameters strict".split()),
    "response_format": frozenset("json_schema type".split()),
    "json_schema": frozenset("description name schema strict".split()),
    "stream_options": frozenset({"include_usage"}),
}
UNSIGNED = "skip_thought_signature_validator"
"""What stands in place of a proof on a call that another model made."""
EFFORTS = frozenset({"none", "minimal", "low", "medium", "high"})


def check_google(body: Body) -> None:
    """Refuse what the endpoint does not know, and calls without their proof. Raises Refusal."""
    if unknown := list(_unknown(body)):
        raise unknown_names(unknown)
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in EFFORTS:
        raise _invalid(f"Invalid value for reasoning_effort: {effort}")
    for at, message in enumerate(body["messages"]):
        calls = message.get("tool_calls") or ()
        # Of several calls at once only the first carries it.
        if calls and _given(calls[0]) not in (signature(calls[0]), UNSIGNED):
            reason = (
                "Function call is missing a thought_signature in functionCall parts. Additional data, function call"
            )
            raise _invalid(f"{reason} `default_api:{calls[0]['function']['name']}`, position {at}.")


def signature(call: Body) -> str:
    """Return the proof of the thought that led to a call; it comes with the call and has to go back with it."""
    function = call["function"]
    return hashlib.sha256(f"{function['name']} {function['arguments']}".encode()).hexdigest()


def _given(call: Body) -> Any:
    return ((call.get("extra_content") or {}).get("google") or {}).get("thought_signature")


def _invalid(message: str) -> Refusal:
    return Refusal(message, violations=(message,))


def _unknown(body: Body) -> Iterator[tuple[str, str]]:
    yield from _beside(body, "request", "")
    yield from _beside(body.get("stream_options"), "stream_options", "stream_options")
    form = body.get("response_format") or {}
    yield from _beside(form, "response_format", "response_format")
    yield from _beside(form.get("json_schema"), "json_schema", "response_format.json_schema")
    for at, tool in enumerate(body.get("tools") or ()):
        yield from _beside(tool, "tool", f"tools[{at}]")
        yield from _beside(tool.get("function"), "function", f"tools[{at}].function")
    for at, message in enumerate(body["messages"]):
        yield from _in_message(message, f"messages[{at}]")


def _in_message(message: Body, place: str) -> Iterator[tuple[str, str]]:
    yield from _beside(message, "message", place)
    content = message.get("content")
    for at, part in enumerate(content if isinstance(content, list) else ()):
        yield from _beside(part, "part", f"{place}.content[{at}]")
        yield from _beside(part.get("image_url"), "image", f"{place}.content[{at}].image_url")
    for at, call in enumerate(message.get("tool_calls") or ()):
        yield from _beside(call, "call", f"{place}.tool_calls[{at}]")
        yield from _beside(call.get("function"), "called", f"{place}.tool_calls[{at}].function")


def _beside(value: Any, kind: str, place: str) -> Iterator[tuple[str, str]]:
    known: Collection[str] = KNOWN[kind]
    if isinstance(value, dict):
        yield from ((name, place) for name in value if name not in known)
