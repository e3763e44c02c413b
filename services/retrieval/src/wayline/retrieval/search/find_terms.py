"""Find the words of a query in the index: by their stems, by their beginnings, and where one letter is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from wayline.retrieval.search.query_syntax import ParsedQuery
from wayline.retrieval.search.ranking import Term, forms_of, missing_share
from wayline.retrieval.search.search_plan import Search
from wayline.retrieval.search.spelling import may_be_misspelt

CORRECTED_MAX = 4
"""Words of a query that near words are looked for."""
MISSING_MIN = 0.25
"""The share of a query's weight that is in no passage from which on near words are looked for: one word of four. Beside
many known words an unknown one says little, and what looks like it says less."""
NEAR_MAX = 3
"""Near words that stand for one of them."""


@dataclass(frozen=True, slots=True)
class FoundTerms:
    """The words of a query, and which near ones stand for those that no passage has."""

    terms: Sequence[Term] = ()
    corrected: dict[str, tuple[str, ...]] = field(default_factory=dict)


async def find_terms(search: Search, parsed: ParsedQuery, *, chunks: int) -> FoundTerms:
    """Return the words that passages are ranked by; near ones where what no passage has is much of the query."""
    terms = await search.terms(parsed.text)
    corrected: dict[str, tuple[str, ...]] = {}
    for forms in forms_of(terms) if missing_share(terms, chunks=chunks) >= MISSING_MIN else ():
        known = any(term.chunks > 0 for term in forms)
        if known or not forms[0].place or len(corrected) == CORRECTED_MAX:
            continue
        for term in forms:
            near = await search.near_terms(term.word) if may_be_misspelt(term.word) else []
            if near:
                corrected[term.word] = tuple(one.word for one in near[:NEAR_MAX])
                # Once, however often the word comes: a guess is no surer for being repeated.
                terms += [replace(one, place=term.place, near=True) for one in near[:NEAR_MAX]]
                break
    for at, beginning in enumerate(parsed.beginnings, start=1):
        terms += [replace(term, place=-at) for term in await search.terms_that_begin(beginning)]
    by_word = {term.word: term for term in reversed(terms)}
    return FoundTerms([term for term in terms if by_word[term.word] is term], corrected)
