"""A text between its fences: prose as it is, and each fenced block by itself, as code or as a difference. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from markdown_it.token import Token
from markupsafe import Markup

from wayline.console.render.code_words import coloured
from wayline.console.render.diffs.card import DiffCard, card_of
from wayline.console.render.markdown_text import READ_MAX_CHARS, blocks_of, left_out, lines_of, rendered

LINES_SHOWN: Final = 400
"""Of one block; the file has the others."""
CHARS_SHOWN: Final = 40_000
BLOCKS_MAX: Final = 100
"""Of one text that are shown as cards."""
_FENCE: Final = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_LANGUAGE: Final = re.compile(r"[\w+#-]{1,20}", re.ASCII)
ENDINGS: Final = {
    **{"python": "py", "python3": "py", "javascript": "js", "typescript": "ts", "bash": "sh", "shell": "sh"},
    **{"markdown": "md", "yaml": "yaml", "yml": "yaml", "rust": "rs", "ruby": "rb", "c++": "cpp", "diff": "patch"},
    **{name: name for name in ("py", "js", "ts", "sh", "md", "rs", "rb", "c", "cpp", "go", "java", "json", "sql")},
    **{name: name for name in ("html", "css", "xml", "toml", "ini", "csv", "patch", "php", "tsx", "jsx")},
}
"""Of files, by the word behind a fence; of others it is `txt`."""


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    number: int
    """From 1 in its text."""
    text: str
    language: str = ""

    @cached_property
    def diff(self) -> DiffCard | None:
        """Return the difference that it is; None: it is none that can be read."""
        return card_of(self.text) if self.language in ("", "diff", "patch", "udiff") else None

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def shown(self) -> Markup:
        """Return its first lines, with their words in colours."""
        return coloured(self._head, self.language)

    @property
    def _head(self) -> str:
        return "".join(self.text[:CHARS_SHOWN].splitlines(keepends=True)[:LINES_SHOWN])

    @property
    def is_whole(self) -> bool:
        """Return whether all of it is shown."""
        return len(self._head) == len(self.text)

    @property
    def file(self) -> str:
        """Return the end of the name that it has as a file."""
        return f"{self.number}.{'patch' if self.diff else ENDINGS.get(self.language, 'txt')}"


@dataclass(frozen=True, slots=True)
class Prose:
    """What stands between fences: strangers' markdown as harmless HTML, or the text as it is."""

    html: Markup = Markup()  # noqa: RUF009 - it never changes
    text: str = ""


def markdown_parts(text: Any, most: int = READ_MAX_CHARS) -> list[Prose | Block]:
    """Return a markdown text as prose that runs nothing and the fenced blocks between it; of a longer one the head."""
    text = str(text)
    tokens, env = blocks_of(text[:most])
    parts = list[Prose | Block]()
    for block, run in _split(tokens):
        if run:
            parts.append(Prose(rendered(run, env)))
        if block:
            parts.append(block)
    if more := left_out(text, most):
        parts.append(Prose(more))
    return parts


def plain_parts(text: Any, most: int = READ_MAX_CHARS) -> list[Prose | Block]:
    """Return a text with fenced blocks as what stands between them, unchanged, and these; none: it has no block."""
    if not isinstance(text, str) or not _FENCE.search(text[:most]):
        return []
    lines, tokens, at = lines_of(text[:most]), blocks_of(text[:most])[0], 0
    parts = list[Prose | Block]()
    for block in _blocks(tokens):
        assert block.map is not None
        begin, end = block.map
        if before := "".join(lines[at:begin]).strip("\n"):
            parts.append(Prose(text=before))
        parts.append(_block(block, len([one for one in parts if isinstance(one, Block)]) + 1))
        at = end
    if parts and (rest := "".join(lines[at:]).strip("\n")):
        parts.append(Prose(text=rest))
    return parts


def block_of(text: Any, number: int) -> Block | None:
    """Return one fenced block of a text by its number; None: it has not so many."""
    # As it was written, without names in the place of what hides.
    found = _blocks(blocks_of(str(text)[:READ_MAX_CHARS], as_written=True)[0])
    return next((_block(one, number) for at, one in enumerate(found, 1) if at == number), None)


def _blocks(tokens: Sequence[Token]) -> list[Token]:
    return [one for one in tokens if one.type == "fence" and one.level == 0][:BLOCKS_MAX]


def _block(token: Token, number: int) -> Block:
    named = _LANGUAGE.match(token.info.strip().lower())
    return Block(number, token.content, named[0] if named else "")


def _split(tokens: Sequence[Token]) -> Iterator[tuple[Block | None, Sequence[Token]]]:
    """Yield runs of tokens, each with the block behind it."""
    begin, ours = 0, {id(one) for one in _blocks(tokens)}
    number = 0
    for at, token in enumerate(tokens):
        if id(token) in ours:
            number += 1
            yield _block(token, number), tokens[begin:at]
            begin = at + 1
    yield None, tokens[begin:]
