"""Words of code in colours, by classes: one pass that reads each character once, whatever strangers wrote. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from wayline.console.render.formats import visible

COLOURED_MAX_CHARS: Final = 20_000
"""Of longer code the rest is plain."""
_HASH: Final = r"\#[^\n]*"
_SLASHES: Final = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_DASHES: Final = r"--[^\n]*|/\*.*?(?:\*/|\Z)"
_PYTHON: Final = frozenset(
    "False None True and as assert async await break case class continue def del elif else except finally for from "
    "global if import in is lambda match nonlocal not or pass raise return try while with yield".split()
)
_CURLY: Final = frozenset(
    "abstract as async await bool break case catch char class const continue default defer do double else enum export "
    "extends false final finally float fn for from func function go if impl implements import in instanceof int "
    "interface let long loop map match mod mut new nil null of package private protected pub public range return self "
    "static string struct super switch this throw trait true try type typeof undefined use var void while yield".split()
)
_SHELL: Final = frozenset(
    "case cd do done echo elif else esac eval exec exit export fi for function if in local read return set shift "
    "source then trap unset until while".split()
)
_SQL: Final = frozenset(
    "add all alter and any as asc begin between by case check column commit constraint create cross default delete "
    "desc distinct drop else end except exists foreign from full group having if in index inner insert intersect into "
    "is join key left like limit not null offset on or order outer over partition primary references returning right "
    "rollback select set table then union unique update using values view when where with".split()
)
_VALUES: Final = frozenset("true false null yes no on off none nan inf".split())


@dataclass(frozen=True, slots=True)
class _Syntax:
    comment: str
    keywords: frozenset[str]
    is_cased: bool = True


_SYNTAXES: Final = {
    **dict.fromkeys(("python", "py", "python3"), _Syntax(_HASH, _PYTHON)),
    **dict.fromkeys(("bash", "sh", "shell", "zsh", "console", "dockerfile", "makefile"), _Syntax(_HASH, _SHELL)),
    **dict.fromkeys(("yaml", "yml", "toml", "ini", "ruby", "rb"), _Syntax(_HASH, _VALUES | _PYTHON)),
    **dict.fromkeys(("sql", "postgres", "postgresql", "sqlite"), _Syntax(_DASHES, _SQL, is_cased=False)),
    **dict.fromkeys(
        (
            *("javascript", "js", "jsx", "typescript", "ts", "tsx", "java", "c", "cpp", "c++", "csharp", "cs", "go"),
            *("rust", "rs", "kotlin", "swift", "scala", "php", "css"),
        ),
        _Syntax(_SLASHES, _CURLY),
    ),
    **dict.fromkeys(("json", "jsonc", "ndjson"), _Syntax(_SLASHES, _VALUES)),
}
"""By the word behind a fence; of others nothing is coloured."""


def _pattern(comment: str) -> re.Pattern[str]:
    # What an alternative has read it takes, also where it never ends: nothing is read a second time.
    return re.compile(
        rf"(?P<comment>{comment})"
        r'|(?P<text>"""(?:.*?(?:"""|\Z))|\'\'\'(?:.*?(?:\'\'\'|\Z))'
        r'|"(?:\\.|[^"\\\n])*"?|\'(?:\\.|[^\'\\\n])*\'?|`(?:\\.|[^`\\])*`?)'
        r"|(?P<number>(?<![\w.])\d[\w.]*)"
        r"|(?P<word>[^\W\d]\w*)",
        re.DOTALL,
    )


_PATTERNS: Final = {comment: _pattern(comment) for comment in (_HASH, _SLASHES, _DASHES)}
_NAMES_NEXT: Final = frozenset({"def", "class", "function", "func", "fn", "struct", "interface", "type", "enum"})
"""Words after which the name of something new stands."""


def coloured(code: str, language: str = "python") -> Markup:
    """Return code with its words in classes; strangers' characters that hide others are shown by name."""
    syntax = _SYNTAXES.get(language)
    if syntax is None:
        return Markup(escape(visible(code)))
    head, rest = visible(code[:COLOURED_MAX_CHARS]), visible(code[COLOURED_MAX_CHARS:])
    pieces, at, before = list[str](), 0, ""
    for found in _PATTERNS[syntax.comment].finditer(head):
        pieces.append(str(escape(head[at : found.start()])))
        kind, text, at = found.lastgroup, found[0], found.end()
        if kind == "word":
            is_key = (text if syntax.is_cased else text.lower()) in syntax.keywords
            kind = "keyword" if is_key else "name" if before in _NAMES_NEXT else None
            before = text
        pieces.append(f'<span class="word-{kind}">{escape(text)}</span>' if kind else str(escape(text)))
    return Markup("".join(pieces) + str(escape(head[at:])) + str(escape(rest)))
