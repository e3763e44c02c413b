"""What strangers wrote runs nothing, fetches nothing, posts nothing, and changes no page around it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.console.render.environment import Templates
from wayline.console.render.markdown_text import ATTRIBUTES, SCHEMES, TAGS, markdown
from wayline.console.render.steps import Step, ToolCall

PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<form action=https://evil.example><input name=a></form>",
    "<a hx-get=/jobs hx-trigger=load>x</a>",
    "<div hx-on:load='alert(1)'>",
    "<style>body{display:none}</style>",
    "<base href=https://evil.example>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<math><mtext></form><form><mglyph><svg><mtext><style><path id=</style><img onerror=alert(1) src>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "![x](https://evil.example/pixel.png)",
    "![x](//evil.example/pixel.png)",
    '[x](https://example.com "onmouseover=alert(1)")',
    '[a](https://example.com/"onclick="alert(1))',
    "<https://example.com/%22onclick=alert(1)>",
    "```html\n</code></pre><script>alert(1)</script>\n```",
    "| a |\n|---|\n| <b onclick=alert(1)>x |",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\u202e<script>\u202c",
    "\x1b]8;;https://evil.example\x07click\x1b]8;;\x07",
    "x" * 100_000,
    "[" * 5_000,
    "> " * 500 + "deep",
    "\ud800 half",
    "\x00null",
]


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
    assert all(
        re.match(r"(?i)[^:/?#]*(?:[/?#]|$)", link) or link.partition(":")[0].lower() in SCHEMES for link in seen.links
    )


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_markdown_of_a_stranger_is_harmless(payload: str):
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


@pytest.mark.parametrize("payload", PAYLOADS[:12])
def test_a_strangers_words_are_escaped_in_every_template(payload: str):
    call = ToolCall(payload, {payload: payload}, status="failed", output=payload, duration_ms=1)
    step = Step(1, payload, payload, {"1": call})
    html = Templates()._environment.from_string("{{ c.step(step) }}").render(step=step)

    tags = Seen(html).tags
    assert tags <= TAGS | {"section", "details", "summary", "div"}
