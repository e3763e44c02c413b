"""What the simulator says without a script: decided by the request alone.

1. Tools offered and nothing found yet: call those that the user names, else the one that most plainly searches.
2. A JSON Schema asked for: a value that satisfies it.
3. Results given: answer from their first sentences.
4. Names to choose from, one a line under `- `: the first that the user's words hint at, else the last.
5. Else: say the question back.
"""

from __future__ import annotations

import re
from typing import Any

from wayline.simulator.scripts.script import Asked, Offered, Say
from wayline.simulator.scripts.values import value

SEARCHES = ("search", "find", "retriev", "lookup", "look_up", "query", "recall")
"""What the name of a tool that searches has in it, the plainest first."""
QUOTE_CHARS_MAX = 200
NAME_TO_CHOOSE = re.compile(r"^- ([a-z_]+)$", re.MULTILINE)
HINT_CHARS = 5
"""Of a word's beginning, by which its other forms are known."""


def by_rules(asked: Asked) -> Say:
    """Return the reply that the rules give."""
    thinking = f"What is asked: {_cut(asked.text)}" if asked.thinks else ""
    if not asked.results:
        calls = tuple((tool.name, _arguments(tool, asked.text)) for tool in _wanted(asked))
        if calls:
            return Say(tools=calls, thinking=thinking)
    if asked.schema is not None:
        return Say(value=value(asked.schema, _cut(asked.text) or "text"), thinking=thinking)
    if asked.results:
        found = " ".join(_first_sentence(turn.text) for turn in asked.results)
        return Say(text=f"From {len(asked.results)} results: {found}", thinking=thinking)
    return Say(text=_chosen(asked) or f"You asked: {_cut(asked.text)}", thinking=thinking)


def _chosen(asked: Asked) -> str:
    names = [] if asked.tools else NAME_TO_CHOOSE.findall(asked.system)
    text = asked.text.casefold()
    hinted = (name for name in names if any(re.search(rf"\b{word[:HINT_CHARS]}", text) for word in name.split("_")))
    return next(hinted, names[-1] if names else "")


def _wanted(asked: Asked) -> list[Offered]:
    words = asked.text.casefold()
    named = [tool for tool in asked.tools if _mentions(words, tool.name.casefold())]
    searching = [tool for word in SEARCHES for tool in asked.tools if word in tool.name.casefold()]
    return named or searching[:1]


def _mentions(words: str, name: str) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", words) for form in (name, name.replace("_", " ")))


def _arguments(tool: Offered, text: str) -> dict[str, Any]:
    if not tool.schema.get("properties"):
        return {} if tool.schema else {"query": text}
    # What may be left out is: a question is no name of a document.
    fields, needed = tool.schema["properties"], tool.schema.get("required")
    wanted = {name: fields[name] for name in fields if not needed or name in needed}
    return value({**tool.schema, "properties": wanted}, text or "text")


def _first_sentence(text: str) -> str:
    """Return the first sentence; a heading is none."""
    pieces = re.split(r"(?<=[.!?])\s+|\n+", text.strip())
    return _cut(next((piece for piece in pieces if piece.endswith((".", "!", "?"))), pieces[0]))


def _cut(text: str) -> str:
    return text[:QUOTE_CHARS_MAX].strip()
