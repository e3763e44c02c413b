"""By what a new fact finds those that it has to be compared with, so that a save does not read all of them. Pure.

Each rule of `compare_facts` has a kind of key: two facts that the rule may find alike or contrary share one. The keys
are stored with a fact: a change of a rule needs a migration that sets them to null. A fact without keys is always read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import sha256

from wayline.retrieval.memory.compare_facts import OPPOSITE_OVERLAP_MIN, one_value_of
from wayline.retrieval.memory.fact_text import FactText

KEY_CHARS = 16


def comparison_keys(words: FactText, *, keywords: Sequence[str] = (), about: str | None = None) -> list[str]:
    """Return the keys under which a fact is stored."""
    return sorted({*_likeness(words, keywords, about), *_claims(words, denied=words.negated)})


def keys_to_compare(words: FactText, *, keywords: Sequence[str] = (), about: str | None = None) -> list[str]:
    """Return the keys of the facts that a new one may repeat or contradict."""
    return sorted({*_likeness(words, keywords, about), *_claims(words, denied=not words.negated)})


def _likeness(words: FactText, keywords: Sequence[str], about: str | None) -> set[str]:
    found = {f"t{words.text_hash[:KEY_CHARS]}"}
    if words.claims:
        found.add(_key("c", *sorted(words.claims)))
    if keywords:
        found.add(_key("k", *sorted({keyword.casefold() for keyword in keywords})))
    if (slot := one_value_of(words, about)) is not None:
        found.add(_key("s", slot))
    return found


def _claims(words: FactText, *, denied: bool) -> set[str]:
    """Return keys of a few of its words: of two facts with enough words in common at least one of them is both's."""
    words_in_common = math.ceil(len(words.claims) * OPPOSITE_OVERLAP_MIN)
    few = sorted(words.claims)[: len(words.claims) - words_in_common + 1]
    return {_key("d" if denied else "a", word) for word in few}


def _key(kind: str, *parts: str) -> str:
    return kind + sha256("\n".join(parts).encode()).hexdigest()[:KEY_CHARS]
