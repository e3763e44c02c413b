"""Text out of formats that are text themselves: notebooks, subtitles, JSON, RTF."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

from wayline.documents.errors import Unreadable
from wayline.documents.readable import TextPage

OUTPUT_CHARS_MAX = 2_000
"""Of what one cell of a notebook printed."""
LINE_CHARS_MAX = 1_000
"""JSON with a longer line was written for programs: it is laid out anew."""
SUBTITLES_S = 30
"""Of what was said, in one paragraph."""

_TIME = re.compile(r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})(?:[.,]\d{1,3})?[ \t]*-->")
_TAG = re.compile(r"</?[a-zA-Z][^>]{0,200}>|<[\d:.]{5,15}>|\{\\[^}]{1,50}\}")
"""Of styles, of the time when a word is said, and of places on the screen."""
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
INDENT_MAX = 20
"""Levels; with all of them a small file that is nested deep would fill the memory."""
_COUNT = re.compile(r"\d{1,6}")
_VOICE = re.compile(r"<v(?:\.[^ >]{0,50})?[ \t]+([^>]{1,100})>")


def notebook_page(text: str) -> TextPage:
    """Return the cells of a notebook as Markdown, with the text that they printed."""
    book = _json(text)
    cells = book.get("cells") if isinstance(book, dict) else None
    sheets = _at(book, "worksheets")
    if cells is None and isinstance(sheets, list):
        # As version 3 had it.
        cells = [cell for sheet in sheets for cell in _list(_at(sheet, "cells"))]
    if not isinstance(cells, list):
        raise Unreadable("This is no notebook of Jupyter: save it anew.")
    language = _at(book, "metadata", "language_info", "name") or _at(book, "metadata", "kernelspec", "language") or ""
    return TextPage("\n\n".join(block for cell in cells for block in _cell(cell, str(language))), markdown=True)


def _cell(cell: Any, language: str) -> Iterator[str]:
    source = _joined(_at(cell, "source") or _at(cell, "input")).strip("\n")
    if not source.strip():
        return
    if _at(cell, "cell_type") == "heading":
        level = _at(cell, "level")
        yield f"{'#' * int(level) if level in range(1, 7) else '#'} {' '.join(source.split())}"
        return
    if _at(cell, "cell_type") != "code":
        yield source
        return
    yield f"```{language}\n{source}\n```"
    for output in _list(_at(cell, "outputs")):
        printed = _joined(_at(output, "text") or _at(output, "data", "text/plain")).strip("\n")
        if _at(output, "output_type") in ("error", "pyerr"):
            printed = f"{_joined(_at(output, 'ename'))}: {_joined(_at(output, 'evalue'))}"
        if printed.strip():
            yield f"```\n{printed[:OUTPUT_CHARS_MAX]}\n```"


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return "".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def subtitles_page(text: str) -> TextPage:
    """Return what is said in subtitles (SRT, WebVTT), some sentences together after the time when they begin."""
    paragraphs: list[tuple[int, list[str]]] = []
    for start, said in _cues(text):
        if not paragraphs or start - paragraphs[-1][0] >= SUBTITLES_S:
            paragraphs.append((start, []))
        paragraphs[-1][1].append(said)
    shown = (f"[{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}] {' '.join(said)}" for at, said in paragraphs)
    return TextPage("\n\n".join(shown))


def _cues(text: str) -> Iterator[tuple[int, str]]:
    """Yield when something is said, and what; rolling captions repeat the line before, which counts once."""
    start, said, last = None, list[str](), ""
    for line in [*text.splitlines(), ""]:
        found = _TIME.match(line.strip())
        if found and said and _COUNT.fullmatch(said[-1]):
            # Where no blank line parts two cues this is the number of the next one.
            said.pop()
        if start is not None and (found or not line.strip()):
            fresh = said[1:] if said and said[0] == last else said
            last = said[-1] if said else last
            if any(fresh):
                yield start, " ".join(fresh)
            start, said = None, []
        if found:
            start = int(found[1] or 0) * 3600 + int(found[2]) * 60 + int(found[3])
        elif start is not None:
            said.append(unescape(_TAG.sub("", _VOICE.sub(r"\1: ", line))).strip())


def json_page(text: str) -> TextPage:
    """Return JSON as it is, laid out anew where its lines are long; what is no JSON is text all the same."""
    if max(map(len, text.splitlines()), default=0) > LINE_CHARS_MAX:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return TextPage(text)
        text = "".join(_laid_out(text))
    return TextPage(text, code=True)


def _laid_out(text: str) -> Iterator[str]:
    """Yield the tokens of valid JSON on lines of their own: numbers and names stay as they are written."""
    deep, before = 0, ""
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in "]}":
            deep -= 1
            yield token if before in ("[", "{") else _line(deep) + token
        else:
            if before in ("[", "{", ","):
                yield _line(deep)
            deep += token in ("[", "{")
            readable = json.dumps(json.loads(token), ensure_ascii=False) if "\\" in token else token
            yield ": " if token == ":" else readable
        before = token


def _line(deep: int) -> str:
    return "\n" + "  " * min(deep, INDENT_MAX)


def rtf_page(text: str) -> TextPage:
    """Return the text of an RTF file."""
    from striprtf.striprtf import rtf_to_text

    text = text.lstrip()
    if not text.startswith("{\\rtf"):
        raise Unreadable("This is no RTF: check the file and its media type.")
    return TextPage(rtf_to_text(text, errors="ignore"))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable("The file is no valid JSON: save it anew.") from error
