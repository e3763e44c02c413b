"""Readable text out of HTML."""

from __future__ import annotations

import html as entities
import re
from dataclasses import dataclass
from html.parser import HTMLParser

from wayline.documents.characters import characters
from wayline.documents.formats.html_tables import with_rows

_SILENT = frozenset({"script", "style", "template", "noscript", "svg", "head", "title"})
_BLOCK = frozenset(
    "address article aside blockquote br dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header "
    "hr li main nav ol p pre section table td th tr ul".split()
)
_FRAME = frozenset({"nav", "header", "footer", "aside", "form", "menu"})
"""What stands around the text of a page."""
_SIGNS = {f"h{level}": "#" * level + " " for level in range(1, 7)} | {"li": "- "}
FOUND_MIN = 0.35
"""The share of a page's text, without what stands around it, below which an extraction has lost too much of it."""
TITLE_CHARS_MAX = 300

_TITLE = re.compile(r"<title[^>]{0,200}>(.{0,2000}?)</title>", re.I | re.S)
_SPACES = re.compile(r"[ \t\f\v]+")
_BLANKS = re.compile(r"(?<!\s)\s*\n\s*\n\s*")


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """A page as a reader needs it."""

    title: str
    markdown: str


def html_page(content: bytes, *, charset: str = "", url: str = "", links: bool = True) -> HtmlPage:
    """Return the article of a page as Markdown with its links, or all its text where there is none. Blocking."""
    import trafilatura

    html = characters(content, html=True, charset=charset)
    found = trafilatura.extract(
        html,
        url=url or None,
        output_format="markdown",
        include_comments=False,
        include_tables=True,
        include_links=links,
    )
    title = _TITLE.search(html)
    name = " ".join(entities.unescape(title[1]).split())[:TITLE_CHARS_MAX] if title else ""
    return HtmlPage(name, _whole(html, found or ""))


def all_text(html: str, *, frame: bool = True) -> str:
    """Return all text of a page as Markdown with its headings and lists; without `frame`, not what stands around it."""
    words = _Words(_SILENT if frame else _SILENT | _FRAME)
    words.feed(html)
    words.close()
    text = _SPACES.sub(" ", "".join(words.parts))
    return _BLANKS.sub("\n\n", text).strip()


def _whole(html: str, found: str) -> str:
    """Return what was found in a page, or all its text where too little was or the rows of its tables are lost."""
    rows = with_rows(html, found)
    if rows is not None:
        return all_text(rows)
    inside = all_text(html, frame=False)
    if len(found.strip()) >= FOUND_MIN * len(inside):
        return found.strip() or all_text(html)
    return inside


class _Words(HTMLParser):
    def __init__(self, silent: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._left_out = silent
        self._silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "body":
            # What stands before it and was never closed does not swallow the page.
            self._silent.clear()
        elif tag in self._left_out:
            self._silent.append(tag)
        elif tag in _BLOCK:
            self.parts.append("\n\n" + _SIGNS.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._silent:
            while self._silent.pop() != tag:
                pass
        elif tag in _BLOCK:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)
