"""Markdown that strangers wrote, as HTML that can do nothing: no raw HTML, no images, links that show their host."""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from wayline.console.render.formats import visible

READ_MAX_CHARS = 50_000
"""Of a longer text the beginning is rendered; the whole stands under "raw"."""
SCHEMES = {"http", "https", "mailto"}
TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a", "span"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "span": {"class"}, "th": set(), "td": set()}
CLASSES = {"host"}
HERE = "this console"
"""Where an address leads that names no host."""
SLASHES = "/\\"
_LINE_END: Final = re.compile(r"\r\n?|\n")


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    """Render an image as a link: a picture that is fetched tells its host that the page was opened."""
    token = tokens[index]
    address, said = str(token.attrs.get("src", "")), token.content or "image"
    return f'<a href="{escape(address)}">{escape(said)}</a>{_host_of(address)}'


def _link_close(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    """Render the end of a link with the host that it leads to."""
    opened = next((token for token in reversed(tokens[:index]) if token.type == "link_open"), None)
    return f"</a>{_host_of(str(opened.attrs.get('href', ''))) if opened else ''}"


def _host_of(address: str) -> str:
    # Browsers take `https:example.com` and `https:/example.com` for what has both slashes.
    scheme, colon, rest = address.partition(":")
    is_web = colon and scheme.casefold() in ("http", "https")
    try:
        host = urlsplit(f"//{rest.lstrip(SLASHES)}" if is_web else address).hostname
    except ValueError:
        host = None
    if not host and not colon and address[:1] not in ("", "#"):
        host = HERE
    return f' <span class="host">({escape(host)})</span>' if host else ""


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_close", _link_close)
    return parser


_PARSER = _parser()


def blocks_of(text: str, *, as_written: bool = False) -> tuple[list[Token], dict[str, Any]]:
    """Return the blocks of a text, and what its links refer to; what is shown says by name what hides."""
    env = dict[str, Any]()
    return _PARSER.parse(text if as_written else visible(text), env), env


def lines_of(text: str) -> list[str]:
    """Return the lines of a text as the parser counts them, each with its end."""
    return [f"{line}\n" for line in _LINE_END.split(visible(text))]


def rendered(tokens: Sequence[Token], env: dict[str, Any]) -> Markup:
    """Return some of a text's blocks as HTML that runs nothing, fetches nothing and posts nothing."""
    html = _PARSER.renderer.render(tokens, _PARSER.options, env)
    # The parser escapes raw HTML already; this holds where it would have a fault.
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes={name: set(kept) - {"class"} for name, kept in ATTRIBUTES.items()},
        allowed_classes={"span": CLASSES},
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)


def left_out(text: str, most: int) -> Markup:
    """Say how much of a text is not shown; empty: all of it is."""
    more = len(text) - most
    return Markup(f'<p><span class="host">… {more:,} more characters: see the raw log</span></p>' if more > 0 else "")


def markdown(text: Any, most: int = READ_MAX_CHARS) -> Markup:
    """Return a text as HTML that runs nothing; of a longer one the beginning."""
    text = str(text)
    return rendered(*blocks_of(text[:most])) + left_out(text, most)
