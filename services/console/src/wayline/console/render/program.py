"""Programs that models write, with their words in colours: by classes, as a page may have no style attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup, escape
from pygments.lexers.python import PythonLexer
from pygments.token import Token

from wayline.console.render.formats import visible

HIGHLIGHTED_MAX_CHARS: Final = 20_000
"""Of a longer program the rest is plain."""
_CLASSES: Final = (
    (Token.Comment, "word-comment"),
    (Token.Keyword, "word-keyword"),
    (Token.Operator.Word, "word-keyword"),
    (Token.Literal.String, "word-text"),
    (Token.Literal.Number, "word-number"),
    (Token.Name.Function, "word-name"),
    (Token.Name.Class, "word-name"),
    (Token.Name.Builtin, "word-name"),
)


def program_of(arguments: Any) -> str:
    """Return the program that a call was given; empty: it was given none."""
    code = arguments.get("code") if isinstance(arguments, Mapping) and len(arguments) == 1 else None
    return code if isinstance(code, str) else ""


def highlighted(code: str) -> Markup:
    """Return Python with its words in classes; strangers' characters that hide others are shown by name."""
    head, rest = code[:HIGHLIGHTED_MAX_CHARS], code[HIGHLIGHTED_MAX_CHARS:]
    pieces = list[str]()
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens(visible(head)):
        name = next((name for token, name in _CLASSES if kind in token), "")
        pieces.append(f'<span class="{name}">{escape(text)}</span>' if name else str(escape(text)))
    return Markup("".join(pieces) + str(escape(visible(rest))))
