"""Read what a model wrote in the JSON protocol, from the form it was asked for down to plain text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Literal

import orjson

from wayline.contracts.chat import AssistantMessage, ToolCall
from wayline.llm.broken_json import repair, tool_arguments

ReadAs = Literal["json", "repaired", "tags", "text"]
CALLS_MAX = 64
KEYS = frozenset({"thinking", "action", "tool_calls", "response", "confidence"})
RESPOND = frozenset({"respond", "response", "answer", "final", "final_answer", "final answer"})
TOOL = frozenset({"tool", "tools", "tool_call", "tool_calls", "call_tool", "use_tool"})

_THINK = re.compile(r"\s*<think>(.*?)</think>", re.DOTALL)
_FENCE = re.compile(r"```[A-Za-z0-9_+-]*\s*(?=\{)")
_QUOTE = "[\"'\u2018\u2019\u201c\u201d]?"
_OPENING = re.compile(rf"\{{\s*{_QUOTE}(?:thinking|action|tool_calls|response|confidence){_QUOTE}\s*[:=]")
_TAG = re.compile(
    r"<(thinking|action|tool_calls?|response|confidence)>(.*?)"
    r"(?:</\1>|(?=<(?:thinking|action|tool_calls?|response|confidence)>)|\Z)",
    re.DOTALL,
)
_STARTS_WITH_TAG = re.compile(r"\s*<(?:thinking|action|tool_calls?|response)>")
_CALL_TAG = re.compile(r"^[ \t]*<tool_call>", re.MULTILINE)


def read(text: str, *, tools: Collection[str] = (), cut: bool = False) -> AssistantMessage:
    """Read the message from a model's text; `read_as` names the rung of the ladder that found it.

    `cut`: it did not end by itself. The last call of a text that was cut, or that ends in the middle of its envelope,
    is not mended: half its parameters are wrong parameters.
    """
    thought = _THINK.match(text)
    body = text[thought.end() :] if thought else text
    found, read_as, ended = _find(body, tools)
    if found is None:
        message = AssistantMessage(text=body.strip(), read_as="text")
    else:
        message = _message(found, tools, read_as)
        if message.tool_calls and (cut or not ended):
            message = _without_half_call(message, body)
    if thought and not message.thinking:
        message = message.model_copy(update={"thinking": thought[1].strip()})
    return message


def needs_correction(message: AssistantMessage, tools_offered: Collection[str]) -> str | None:
    """Return what to tell a model whose message is unusable; None if it can be used."""
    if message.read_as == "text" and tools_offered:
        return (
            "Your last message was not the JSON object that was asked for. Say the same again as one JSON object, "
            'beginning with {"thinking": … and with "action": "tool" or "action": "respond".'
        )
    if not message.tool_calls and not message.text.strip() and message.read_as != "native":
        return (
            "Your last message held neither a tool call nor a response. Either name tools in `tool_calls`, "
            "or write your answer into `response`."
        )
    return None


def _find(body: str, tools: Collection[str]) -> tuple[dict[str, Any] | None, ReadAs, bool]:
    """Find the envelope in a text, how it was read, and whether it ended before the text did."""
    for value in _whole(body):
        if _is_envelope(value, tools):
            return value, "json", True
    for value, ended in _mended(body):
        if _is_envelope(value, tools):
            return value, "repaired", ended
    tagged, ended = _tagged(body)
    return (tagged, "tags", ended) if tagged else (None, "text", True)


def _whole(body: str) -> Iterator[dict[str, Any]]:
    """Yield objects that need no mending: the whole text, then in fences, then anywhere."""
    try:
        value = repair.strict(body)
    except ValueError:
        value = None
    if isinstance(value, dict):
        yield value
        return
    for fence in _FENCE.finditer(body):
        yield from repair.objects(body[fence.end() :])
        break
    yield from repair.objects(body)


def _mended(body: str) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield mended objects from where an envelope seems to begin, and whether the text ends after them."""
    opening = _OPENING.search(body)
    if opening is None:
        return
    text = body[opening.start() :].rstrip().removesuffix("```")
    mended = _mend(text)
    if mended is None:
        return
    value, ended = mended
    yield from ((one, ended) for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict))


def _mend(text: str) -> tuple[Any, bool] | None:
    """Return the value of a text, and whether it ended before the text did; None: there is none."""
    try:
        return repair.repaired(text, whole=True), True
    except repair.Unfinished:
        return repair.repaired(text), False
    except ValueError:
        return None


def _is_envelope(value: dict[str, Any], tools: Collection[str]) -> bool:
    action = value.get("action")
    if isinstance(action, str) and (_word(action) in RESPOND | TOOL or action in tools):
        return True
    # Without an action it must be nothing but an envelope: an answer may hold any other JSON.
    return KEYS.issuperset(value) and ("response" in value or bool(value.get("tool_calls")))


def _tagged(body: str) -> tuple[dict[str, Any], bool]:
    """Read the tags of a text that begins with one, and whether its last call is whole.

    A tool call may stand on any line.
    """
    start = _STARTS_WITH_TAG.match(body) or _CALL_TAG.search(body)
    if start is None:
        return {}, True
    found: dict[str, Any] = {}
    calls: list[Any] = []
    last_ended = True
    for name, inner in _TAG.findall(body[start.start() :]):
        is_call = name in ("action", "tool_call", "tool_calls") and inner.strip().startswith(("{", "["))
        mended = _mend(inner) if is_call else None
        if mended is not None:
            value, last_ended = mended
            calls.extend(value if isinstance(value, list) else [value])
        elif name != "tool_call":
            found.setdefault(name, inner.strip())
    if calls:
        found["tool_calls"] = calls
    return (found if found.keys() & {"response", "tool_calls", "action"} else {}), last_ended


def _message(found: dict[str, Any], tools: Collection[str], read_as: ReadAs) -> AssistantMessage:
    action = _word(found.get("action"))
    response = next((found[key] for key in ("response", "answer", "action_input") if found.get(key) is not None), "")
    calls = tuple(_calls(found, tools))
    if action in RESPOND and response != "":
        calls = ()
    elif calls and "response" not in found:
        response = ""
    return AssistantMessage(
        text=response if isinstance(response, str) else orjson.dumps(response).decode(),
        tool_calls=calls,
        thinking=_text(found.get("thinking")),
        confidence=_confidence(found.get("confidence")),
        read_as=read_as,
    )


def _calls(found: dict[str, Any], tools: Collection[str]) -> Iterable[ToolCall]:
    named = found.get("tool_calls")
    wanted = named if isinstance(named, list) else [named]
    if not named and ("tool" in found or found.get("action") in tools):
        # One call, written into the envelope itself.
        wanted = [{**found, "tool": found.get("tool") or found["action"]}]
    calls = [call for call in wanted[:CALLS_MAX] if isinstance(call, dict) and _tool_name(call)]
    for number, call in enumerate(calls, 1):
        yield ToolCall(call=str(number), tool=_tool_name(call), arguments=_parameters(call), reason=_reason(call))


def _tool_name(call: dict[str, Any]) -> str:
    function = call.get("function")
    named = function.get("name") if isinstance(function, dict) else function
    return next((name for name in (call.get("tool"), call.get("name"), named) if isinstance(name, str)), "")


def _parameters(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    places = [call, function] if isinstance(function, dict) else [call]
    keys = ("parameters", "arguments", "args", "input", "action_input")
    parameters = next((place[key] for place in places for key in keys if place.get(key) is not None), {})
    if isinstance(parameters, dict):
        return parameters
    return tool_arguments.read(parameters if isinstance(parameters, str) else orjson.dumps(parameters).decode())


def _reason(call: dict[str, Any]) -> str | None:
    return _text(call.get("reasoning") or call.get("reason")) or None


def _without_half_call(message: AssistantMessage, body: str) -> AssistantMessage:
    *whole, last = message.tool_calls
    half = last.model_copy(
        update={"arguments": {tool_arguments.UNREADABLE: body[-tool_arguments.UNREADABLE_MAX_CHARS :]}}
    )
    return message.model_copy(update={"tool_calls": (*whole, half)})


def _confidence(value: Any) -> float | None:
    """Return a confidence from 0 to 1, also from a percentage."""
    if isinstance(value, str):
        number = re.match(r"\s*([0-9]*\.?[0-9]+)\s*(%?)", value)
        value = float(number[1]) / (100 if number[2] else 1) if number else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return min(1.0, max(0.0, value / 100 if value > 1 else float(value)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else orjson.dumps(value).decode()


def _word(value: Any) -> str:
    return value.strip().lower() if isinstance(value, str) else ""
