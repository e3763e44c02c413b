"""Say in one line what a tool call came to, from its arguments and its result; no model is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from wayline.contracts.framed_words import unframed
from wayline.contracts.progress import ProgressState

OBSERVATION_CHARS_MAX = 160
QUERY_CHARS_MAX = 80
_LISTS = (
    "results",
    "hits",
    "items",
    "matches",
    "memories",
    "pages",
    "documents",
    "passages",
    "entries",
    "data",
    "urls",
)
_QUERIES = ("query", "q", "search", "question", "text", "pattern")
_SEARCH = frozenset({"search", "find", "query", "lookup"})
_WEB = frozenset({"web", "internet", "online", "google", "bing", "brave", "tavily", "duckduckgo", "serp", "exa"})
_FETCH = frozenset({"fetch", "crawl", "scrape", "browse"})
_PAGES = frozenset({"page", "pages", "url", "urls", "website"})
_MEMORY = frozenset({"memory", "memories", "remember", "forget"})
_SAVING = frozenset({"save", "store", "add", "write", "create", "update", "delete", "remember", "forget"})
_PASSAGE = re.compile(r"^\[\d+\] ", re.MULTILINE)


def tool_state(tool: str) -> ProgressState:
    """Return what a job does while it waits for a tool, by the words of the tool's name."""
    words = _words(tool)
    if words & _MEMORY:
        return "saving_memory" if words & _SAVING else "retrieving_memory"
    if words & _FETCH or (words & _PAGES and words & {"read", "get", "open", "load"}):
        return "fetching_content"
    return "searching_web" if words & _SEARCH and words & _WEB else "executing_tools"


def observation(tool: str, arguments: Mapping[str, Any] | None, content: str, *, failed: bool) -> str:
    """Return what a call came to: what was found, fetched, remembered or saved, why it failed, else its size."""
    content = unframed(content)
    if failed:
        return _line(f"{tool} failed: {content.strip().partition(chr(10))[0] or 'no reason was given'}")
    arguments = arguments or {}
    value = _decoded(content)
    state, words = tool_state(tool), _words(tool)
    if state == "retrieving_memory":
        found = _count(value, content)
        total = _number(value, "total", "total_count")
        return _line(f"{found if found is not None else 'some'}{f' of {total}' if total is not None else ''} matched")
    if state == "saving_memory":
        saved = _number(value, "saved", "count")
        return _line(f"{_count(value, '') or 1 if saved is None else saved} saved")
    if state == "fetching_content":
        return _line(_fetched(value, arguments))
    if words & _SEARCH and (found := _count(value, content)) is not None:
        query = next((str(arguments[name]) for name in _QUERIES if arguments.get(name)), "")
        return _line(f"{found} found{f' for “{_cut(query, QUERY_CHARS_MAX)}”' if query else ''}")
    return _line(f"{tool}: {_size(len(content.encode()))}")


def joined(observations: Iterable[str]) -> str:
    """Return what all calls of a step came to, in one line."""
    return _line("; ".join(observations))


def _words(tool: str) -> frozenset[str]:
    # Without the prefix of its server, which is no word about the tool.
    name = tool.rpartition("__")[2]
    return frozenset(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))


def _decoded(content: str) -> Any:
    if content.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _items(value: Any) -> list[Any] | None:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
    return None


def _count(value: Any, content: str) -> int | None:
    """Return how many things a result holds; None: it does not tell."""
    items = _items(value)
    if items is not None:
        return len(items)
    counted = _number(value, "matched", "count", "total")
    if counted is not None:
        return counted
    if value is None and content:
        return len(_PASSAGE.findall(content)) or (0 if content.startswith("No ") else None)
    return None


def _number(value: Any, *names: str) -> int | None:
    found = (value.get(name) for name in names) if isinstance(value, dict) else ()
    return next((one for one in found if isinstance(one, int) and not isinstance(one, bool)), None)


def _fetched(value: Any, arguments: Mapping[str, Any]) -> str:
    fetched, failed = _number(value, "fetched"), _number(value, "failed")
    if fetched is not None and failed is not None:
        return f"{fetched} fetched, {failed} failed"
    items = _items(value)
    asked = arguments.get("urls")
    # An address that is named twice is fetched once.
    wanted = len(set(map(str, asked))) if isinstance(asked, list) else None
    if items is None:
        return f"{1 if wanted is None else wanted} fetched"
    bad = sum(isinstance(one, dict) and (bool(one.get("error")) or one.get("success") is False) for one in items)
    missing = 0 if wanted is None else max(0, wanted - len(items))
    return f"{len(items) - bad} fetched, {bad + missing} failed"


def _size(count: int) -> str:
    return f"{count} bytes" if count < 1_024 else f"{count / 1_024:.1f} KiB"


def _line(text: str) -> str:
    return _cut(" ".join(text.split()), OBSERVATION_CHARS_MAX)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
