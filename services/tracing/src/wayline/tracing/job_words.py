"""The words that a job is found by: of its texts, its id, its tags, its tools and the documents that it cites."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

READ_MAX = 4_000
"""Characters of each text that are read."""
WORDS_MAX = 500
"""Words of a job, and of a query."""
WORD_MAX = 64
TENANT, ID, TAG, TOOL, CITED, LABEL = "~", "=", "#", "!", "@", "$"
"""Signs before what is no word: no word begins with one. `LABEL` alone: of a job whose label is in there, too."""

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Scripts without spaces between words, and Hangul, where a word carries its endings: kept as pairs of characters."""


def words_of(texts: Iterable[str | None]) -> list[str]:
    """Return the different words of texts, in lower case."""
    found = dict.fromkeys(word for text in texts if text for word in _split(text[:READ_MAX].lower()))
    return list(found)[:WORDS_MAX]


def job_words(
    tenant: str,
    job_id: str,
    texts: Iterable[str | None],
    *,
    tags: Iterable[str],
    tools: Iterable[str],
    cited: Iterable[str] = (),
    label: str | None = None,
) -> list[str]:
    """Return everything that a job which has ended is found by; `cited`: ids of documents.

    `label`: by which its agent's version was chosen.
    """
    signs = [TENANT + tenant, ID + job_id.lower(), *(TAG + tag for tag in tags), *(TOOL + tool for tool in tools)]
    signs += (CITED + document for document in dict.fromkeys(cited))
    signs += [LABEL, LABEL + label] if label else []
    return signs + words_of(texts)


def _split(text: str) -> Iterator[str]:
    if text.isascii():
        # Nothing of it is written without spaces, so no word is looked through for that.
        yield from (run[:WORD_MAX] for run in _WORD.findall(text))
        return
    for run in _WORD.findall(text):
        end = 0
        for unspaced in _UNSPACED.finditer(run):
            if unspaced.start() > end:
                yield run[end : unspaced.start()][:WORD_MAX]
            yield from _pairs(unspaced[0])
            end = unspaced.end()
        if end < len(run):
            yield run[end:][:WORD_MAX]


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for start in range(len(run) - 1):
        yield run[start : start + 2]
