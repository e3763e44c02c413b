"""The JSON protocol, for models without tools of their own: read out of a request's text, and put around a reply.

A script sees the same turns, calls and results as with native tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from wayline.simulator.scripts.script import Asked, Call, Offered, Say, Turn

WORDS = ("action", "tool_calls", "response")
"""A system prompt that quotes all of these asks for the protocol."""
NOT_TOOLS = frozenset({*WORDS, "thinking", "confidence", "tool", "tools", "parameters", "reasoning"})
LISTED = re.compile(r"^\s*(?:[-*]\s+|#+\s+)[`*]*([A-Za-z][\w.-]*)[`*]*\s*(?:[:(]|$)", re.MULTILINE)
NAMED = re.compile(r'"name"\s*:\s*"([\w.-]+)"')
OBJECT = re.compile(r"^[^{\n]*(\{.*\})\s*$", re.MULTILINE)
WANTED = re.compile(r"JSON Schema:?\s*(\{.*\})\s*$", re.MULTILINE)
"""The schema of the answer, where it is asked for in words."""
HEADING = re.compile(r"\[(RESULT|ERROR)\b[^\]]*\]\s*")


def understood(asked: Asked) -> Asked:
    """Read the schema, tools, calls and results from a request's text."""
    if asked.schema is None and (wanted := WANTED.search(asked.system)):
        asked = replace(asked, schema=_object(wanted[1]))
    if asked.tools or not all(f'"{word}"' in asked.system for word in WORDS):
        return asked
    return replace(asked, speaks_json=True, tools=tuple(_tools(asked.system)), turns=tuple(_turns(asked.turns)))


def in_envelope(say: Say) -> Say:
    """Return the reply in the protocol's form."""
    called = [
        {"tool": name, "parameters": arguments, "reasoning": f"{name} can tell."} for name, arguments in say.tools
    ]
    envelope = {
        "thinking": say.thinking or "The task is clear.",
        "action": "tool" if called else "respond",
        "tool_calls": called,
        "response": say.text if say.value is None else json.dumps(say.value, ensure_ascii=False),
        "confidence": say.confidence,
    }
    return replace(say, text=json.dumps(envelope, ensure_ascii=False), tools=(), value=None)


def _tools(system: str) -> Iterator[Offered]:
    """Yield the tools that a system prompt lists: as headings, as list items or in JSON."""
    listed = list(LISTED.finditer(system))
    ends = [found.start() for found in listed[1:]] + [len(system)]
    schemas = {found[1]: _schema(system[found.end() : end]) for found, end in zip(listed, ends, strict=False)}
    for name in dict.fromkeys([*schemas, *NAMED.findall(system)]):
        if name.casefold() not in NOT_TOOLS:
            yield Offered(name, "", schemas.get(name, {}))


def _schema(section: str) -> dict[str, Any]:
    found = [value for value in (_object(text) for text in OBJECT.findall(section)) if value and "type" in value]
    return found[0] if found else {}


def _turns(turns: tuple[Turn, ...]) -> Iterator[Turn]:
    waiting: list[Call] = []
    for number, turn in enumerate(turns):
        envelope = _object(turn.text) if turn.role == "assistant" else None
        if envelope is not None:
            waiting = list(_calls(envelope, number))
            yield Turn("assistant", str(envelope.get("response") or ""), tuple(waiting))
        elif waiting and (turn.asks or HEADING.match(turn.text)):
            call = waiting.pop(0)
            failed = turn.text.startswith("[ERROR")
            yield Turn("tool", HEADING.sub("", turn.text, count=1), call_id=call.id, tool=call.name, failed=failed)
            # Without a heading of its own it is the results of all calls together.
            waiting = waiting if HEADING.match(turn.text) else []
        else:
            yield turn


def _calls(envelope: dict[str, Any], number: int) -> Iterator[Call]:
    called = envelope.get("tool_calls")
    for at, call in enumerate(called if isinstance(called, list) else ()):
        if isinstance(call, dict):
            arguments = call.get("parameters")
            yield Call(f"{number}.{at}", str(call.get("tool")), arguments if isinstance(arguments, dict) else {})


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
