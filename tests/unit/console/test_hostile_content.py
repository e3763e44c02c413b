"""Whatever strangers write, wherever it stands: nothing of a page is made by them, and nothing of it is lost."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from itertools import islice

import pytest

from wayline.console.render.formats import visible
from wayline.console.render.markdown_text import ATTRIBUTES, SCHEMES, TAGS
from wayline.testkit.walks import cases

from ...console_pages import PAGES, HostilePage
from ...console_payloads import DATA, KINDS, PAYLOADS

TAG = re.compile(r"""<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s+[a-zA-Z][\w:-]*(?:=(?:"[^"<>]*"|'[^'<>]*'))?)*)\s*/?>""")
ATTRIBUTE = re.compile(r"""([a-zA-Z][\w:-]*)(?:=(?:"([^"]*)"|'([^']*)'))?""")
VOID = frozenset({"br", "hr", "input", "link", "meta", "wbr"})
ADDRESSES = frozenset({"href", "src", "action", "formaction", "hx-get", "hx-post", "data-live", "data-region"})
OF_PROSE = {(tag, name) for tag, names in ATTRIBUTES.items() for name in names} | {("a", "rel")}
SCHEME = re.compile(r"[\x00-\x20]*([a-zA-Z][a-zA-Z0-9+.-]*):")
"""As browsers find it: they pass over what stands before it, and over ends of lines within."""
OURS = re.compile(r"/(?![/\\])|[?#]|$")
EVERY = 17
"""One of so many words stands on a rare page in the ordinary suite."""
DIFF = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-this is old\n+this is new\n\\ No newline at end of file\n"
FENCED = f"as\n```python\ndef f(): # 1\n    return 'a'\n```\nor\n```diff\n{DIFF}```\n"
SHAPES = (
    FENCED,
    "said",
    "two\nlines",
    "\x00",
    "s" * 30_000,
    DIFF,
    DIFF + "more",
    '{"before": "old", "after": "new"}',
    "",
)
"""Words of ours, of every kind that a page shows in another way."""
BEGINNING = 12
"""Characters by which a word is known again, also where it is shortened."""


def tags_of(page: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield how each tag begins, its name and its attributes; an angle bracket that is none of a tag is refused."""
    page = page.replace("<!doctype html>", "")
    at = 0
    while (at := page.find("<", at)) >= 0:
        found = TAG.match(page, at)
        assert found, f"this is no tag of a template: {page[at : at + 80]!r}"
        given = {name: html.unescape(one or other) for name, one, other in ATTRIBUTE.findall(found[3])}
        yield found[1], found[2], given
        at = found.end()


def require_ours(page: str) -> list[str]:
    """Return the tags of a page with the names of their attributes, without strangers' prose; none may be theirs."""
    skeleton, open_tags = list[str](), list[tuple[str, bool]]()
    for end, name, given in tags_of(page):
        is_prose = bool(open_tags) and open_tags[-1][1]
        if end:
            assert open_tags and open_tags[-1][0] == name, f"</{name}> ends {open_tags[-1:]}"
            is_prose = open_tags.pop()[1] and bool(open_tags) and open_tags[-1][1]
        elif name not in VOID:
            open_tags.append((name, is_prose or "hx-ignore" in given))
        if is_prose:
            assert name in TAGS and {(name, attribute) for attribute in given} <= OF_PROSE, (name, given)
            scheme = SCHEME.match(re.sub(r"[\t\r\n]", "", given.get("href", "")))
            assert scheme is None or scheme[1].lower() in SCHEMES, given
            continue
        for attribute in ADDRESSES & set(given):
            assert OURS.match(given[attribute]), (name, attribute, given[attribute])
        assert not [attribute for attribute in given if attribute == "style" or attribute.startswith(("on", "hx-on"))]
        skeleton.append(f"{end}{name} {' '.join(given)}")
    assert open_tags == [], open_tags
    return skeleton


def text_of(page: str) -> str:
    """Return what a page says, on one line."""
    return " ".join(html.unescape(TAG.sub("", page)).split())


def batches(shown: HostilePage, words: list[str]) -> Iterator[list[str]]:
    """Yield the words that stand on a page together."""
    left = iter(words)
    while batch := list(islice(left, shown.at_once)):
        yield batch


def known_again(word: str, text: str) -> bool:
    """Return whether a page has the beginning of a word: as it is, or in JSON."""
    seen = visible(word).encode("utf-8", "replace").decode()
    return any(
        " ".join(one.split())[:BEGINNING] in text
        for one in (seen, visible(json.dumps(word, ensure_ascii=False)[1:-1]).encode("utf-8", "replace").decode())
    )


def harmless(word: str) -> str:
    """Return a word that is as long, with its lines and its fences where they are."""
    return re.sub(r"(?m)^(`{3,}|~{3,})|\S", lambda found: found[1] or "s", word)


@pytest.mark.parametrize("name", cases([name for name, shown in PAGES.items() if not shown.is_shaped]))
def test_strangers_words_add_nothing_to_a_page_and_take_nothing(name: str):
    shown = PAGES[name]
    words = [word for word in PAYLOADS if word not in DATA]
    for batch in batches(shown, words[:: EVERY if shown.is_rare else 1]):
        page = shown.make(batch)

        assert require_ours(page) == require_ours(shown.make([harmless(word) for word in batch])), batch
        text = text_of(page)
        assert [word for word in batch if not known_again(word, text)] == []


@pytest.mark.parametrize("name", cases(PAGES))
def test_fields_and_differences_are_made_of_elements_of_ours(name: str):
    shown = PAGES[name]
    known = {tag for word in SHAPES for tag in require_ours(shown.make([word] * 2))}
    for batch in batches(shown, list(PAYLOADS if shown.is_shaped else DATA)):
        assert set(require_ours(shown.make(batch))) <= known, batch


def test_the_table_has_hundreds_of_words_and_none_twice():
    assert len(PAYLOADS) == len(set(PAYLOADS)) >= 300
    assert min(map(len, KINDS.values())) >= 10
