"""Read what a query says beside its words: "exact phrases", words that must not be there, and beginnings of words."""

from __future__ import annotations

import re
from dataclasses import dataclass

SYNTAX_WORDS_MAX = 8
"""A longer query is a sentence or a pasted text: its quotes and dashes are its own."""
ASKED_MAX = 8
"""Phrases, excluded words and beginnings of each kind that are read."""

_ASKED = re.compile(
    r"""
    (?<!\S)-["“„]([^"“”„]+)["”]          # -"not these words"
    | (?<!\S)-([^\W\d_][^\s"*]*)(?!\S)     # -word; no number, and no flag
    | ["“„]([^"“”„]+)["”]                 # "these words"
    | (?<!\S)([^\W_][\w-]+)\*(?!\S)          # begin*
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query's words, and what else it asks for."""

    text: str
    """The words that are ranked by."""
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    beginnings: tuple[str, ...] = ()

    @property
    def demands(self) -> bool:
        """Return whether it asks for more than words."""
        return bool(self.phrases or self.excluded)


def parse_query(query: str) -> ParsedQuery:
    """Read a query; what is no syntax, and all of a long one, is words."""
    if len(query.split(maxsplit=SYNTAX_WORDS_MAX)) > SYNTAX_WORDS_MAX:
        return ParsedQuery(query)
    phrases, excluded, beginnings = list[str](), list[str](), list[str]()

    def read(found: re.Match[str]) -> str:
        not_phrase, not_word, phrase, beginning = found.groups()
        if phrase is not None:
            phrases.append(phrase.strip())
            return f" {phrase} "
        if beginning is not None:
            beginnings.append(beginning)
            return f" {beginning} "
        excluded.append((not_phrase or not_word).strip())
        return " "

    text = " ".join(_ASKED.sub(read, query).split())
    if not text:
        # Nothing but what must not be there: these are words after all.
        return ParsedQuery(query)
    kept = [phrase for phrase in phrases if phrase]
    return ParsedQuery(text, tuple(kept[:ASKED_MAX]), tuple(excluded[:ASKED_MAX]), tuple(beginnings[:ASKED_MAX]))
