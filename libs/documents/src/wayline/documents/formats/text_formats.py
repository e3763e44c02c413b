"""Text out of formats that are text themselves: notebooks, subtitles, JSON, RTF."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from wayline.documents.errors import Unreadable
from wayline.documents.readable import TextPage

OUTPUT_CHARS_MAX = 2_000
"""Of what one cell of a notebook printed."""
LINE_CHARS_MAX = 1_000
"""JSON with a longer line was written for programs: it is laid out anew."""
SUBTITLES_S = 30
"""Of what was said, in one paragraph."""

_TIME = re.compile(r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}[ \t]+-->")
_TAG = re.compile(r"</?[a-zA-Z][^>]{0,200}>")
_VOICE = re.compile(r"<v(?:\.[^ >]{0,50})?[ \t]+([^>]{1,100})>")


def notebook_page(text: str) -> TextPage:
    """Return the cells of a notebook as Markdown, with the text that they printed."""
    book = _json(text)
    cells = book.get("cells") if isinstance(book, dict) else None
    if not isinstance(cells, list):
        raise Unreadable("This is no notebook of Jupyter (version 4 or later): save it anew.")
    language = _at(book, "metadata", "language_info", "name") or _at(book, "metadata", "kernelspec", "language") or ""
    return TextPage("\n\n".join(block for cell in cells for block in _cell(cell, str(language))), markdown=True)


def _cell(cell: Any, language: str) -> Iterator[str]:
    source = _joined(_at(cell, "source")).strip("\n")
    if not source.strip():
        return
    if _at(cell, "cell_type") != "code":
        yield source
        return
    yield f"```{language}\n{source}\n```"
    for output in _at(cell, "outputs") or ():
        printed = _joined(_at(output, "text") or _at(output, "data", "text/plain")).strip("\n")
        if printed.strip():
            yield f"```\n{printed[:OUTPUT_CHARS_MAX]}\n```"


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return "".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


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
        # Rolling captions repeat the line before.
        if not paragraphs[-1][1] or paragraphs[-1][1][-1] != said:
            paragraphs[-1][1].append(said)
    shown = (f"[{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}] {' '.join(said)}" for at, said in paragraphs)
    return TextPage("\n\n".join(shown))


def _cues(text: str) -> Iterator[tuple[int, str]]:
    start, said = None, list[str]()
    for line in [*text.splitlines(), ""]:
        if found := _TIME.match(line.strip()):
            start, said = int(found[1] or 0) * 3600 + int(found[2]) * 60 + int(found[3]), []
        elif start is not None and line.strip():
            said.append(_TAG.sub("", _VOICE.sub(r"\1: ", line)).strip())
        elif start is not None:
            if any(said):
                yield start, " ".join(said)
            start = None


def json_page(text: str) -> TextPage:
    """Return JSON as it is, laid out anew where its lines are long; what is no JSON is text all the same."""
    if max(map(len, text.splitlines()), default=0) > LINE_CHARS_MAX:
        try:
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            return TextPage(text)
    return TextPage(text, code=True)


def rtf_page(text: str) -> TextPage:
    """Return the text of an RTF file."""
    from striprtf.striprtf import rtf_to_text

    if not text.startswith("{\\rtf"):
        raise Unreadable("This is no RTF: check the file and its media type.")
    return TextPage(rtf_to_text(text, errors="ignore"))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable("The file is no valid JSON: save it anew.") from error
