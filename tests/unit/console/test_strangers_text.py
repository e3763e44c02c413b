"""What strangers wrote runs nothing, fetches nothing, posts nothing, and changes no page around it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.console.render.formats import visible
from wayline.console.render.json_text import editable
from wayline.console.render.markdown_text import ATTRIBUTES, SCHEMES, TAGS, markdown

from ...console_payloads import PAYLOADS


class Seen(HTMLParser):
    """The tags and attributes of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add((tag, name))
            if name in ("href", "src"):
                self.links.append(value or "")


def require_harmless(html: str) -> None:
    seen = Seen(html)
    allowed = {(tag, name) for tag, names in ATTRIBUTES.items() for name in names} | {("a", "rel")}
    assert seen.tags <= TAGS
    assert seen.attributes <= allowed
    # As browsers find a scheme: behind what they pass over, and over ends of lines.
    schemes = [re.match(r"[\0-\x20]*([a-zA-Z][\w+.-]*):", re.sub(r"[\t\r\n]", "", link)) for link in seen.links]
    assert all(found is None or found[1].lower() in SCHEMES for found in schemes)


def test_markdown_of_a_stranger_is_harmless():
    for payload in PAYLOADS:
        require_harmless(markdown(payload))


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("<>\"'=/()[]!#`*&; \nascriptonhrefimgx:"), max_size=200))
def test_markdown_of_any_text_is_harmless(text: str):
    require_harmless(markdown(text))


@pytest.mark.parametrize("address", ["https:evil.example/a", "HTTPS:/evil.example", "http:///evil.example"])
def test_a_link_without_its_slashes_shows_its_host(address: str):
    assert '<span class="host">(evil.example)</span>' in markdown(f"[our console]({address})")


def test_a_link_shows_its_host_and_images_are_links():
    html = markdown("[our bank](https://evil.example/login) ![logo](https://evil.example/p.png)")

    assert html.count('<span class="host">(evil.example)</span>') == 2
    assert "<img" not in html
    assert 'rel="noopener noreferrer nofollow"' in html


def test_a_link_without_a_host_leads_into_the_console():
    html = markdown("[your account](/jobs/new?input=x) [below](#step-1)")

    assert html.count('<span class="host">') == 1 and "(this console)" in html


def test_a_text_that_is_cut_says_how_much_is_left():
    assert "… 5 more characters: see the raw log" in markdown("x" * 105, 100)
    assert "more characters" not in markdown("x" * 100, 100)


def test_letters_that_nobody_sees_are_shown_by_name():
    hidden = "a\ufeffb" + "".join(chr(0xE0000 + ord(letter)) for letter in "GO") + "\U000e0100\u3164"

    assert visible(hidden) == "a⟦U+FEFF⟧b⟦U+E0047⟧⟦U+E004F⟧⟦U+E0100⟧⟦U+3164⟧"
    assert json.loads(editable({hidden: hidden})) == {hidden: hidden} and editable(hidden).isascii()


def test_marks_that_are_piled_on_a_letter_are_counted():
    piled = "Z" + "\u0300\u0315" * 20 + "o"

    assert visible(piled) == "Z" + "\u0300\u0315" * 2 + "⟦36 marks⟧o"
    assert visible("Vi\u1ec7t e\u0302\u0323") == "Vi\u1ec7t e\u0302\u0323"
