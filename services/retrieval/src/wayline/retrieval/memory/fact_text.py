"""What a fact's words are for comparing: without spelling, stop words and signs. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
# Han, Kana, Hangul, Thai, Lao, Khmer, Burmese: pairs of characters stand for words.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_LEAD = re.compile(r"^(?:the\s+)?(?:user|client|customer)(?:['\u2019]s)?\s+", re.IGNORECASE)
_STOP = frozenset(
    "a an and are as at be been being but by did do does for from had has have he her hers him his i in into is it its "
    "me my of on or our ours s she so t that the their theirs them then there these they this those to us user was we "
    "were what when where which who whom whose will with would you your yours "
    "der die das den dem des ein eine einen einem ist sind und im am zu "
    "le la les un une des est sont et el los las es y en de".split()
)
_NEGATIONS = frozenset(
    "not no never none neither nor cannot without don't doesn't didn't isn't aren't wasn't won't can't hates hate "
    "dislikes dislike avoids avoid stopped nicht kein keine keinen nie niemals ohne pas jamais sans ne non nunca sin "
    "не нет никогда без 不 没 没有 无 ない ません لا ليس لن 안 않".split()
)
_NEGATING_CHARACTERS = ("不", "没", "无", "ない", "ません", "않")
# A name, then a value of which there is one: "lives in Bonn", "favourite colour is blue", "works at Acme".
_VALUE = re.compile(
    r"^(?P<slot>.{0,80}?\b(?:is|are|was|am|lives in|lives at|works at|works for|works as|was born in|was born on|"
    r"is called|is named|moved to|speaks|heißt|wohnt in|arbeitet bei|habite à|vive en))\s+(?P<value>.+)$",
    re.IGNORECASE,
)
_MANY = re.compile(r"\b(?:interested in|one of|also|allergic to|fan of|member of|able to|good at)\b", re.IGNORECASE)
PLURAL_MIN = 4
"""Letters of a word that may lose an ending."""


@dataclass(frozen=True)
class FactText:
    """A fact's words in the forms that are compared."""

    text: str

    @cached_property
    def plain(self) -> str:
        """Return the text in one spelling: folded, without marks, signs at its ends and double spaces."""
        folded = self.text.casefold()
        if not folded.isascii():
            marked = unicodedata.normalize("NFKD", folded)
            folded = unicodedata.normalize("NFKC", "".join(one for one in marked if not unicodedata.combining(one)))
        return " ".join(folded.replace("\u2019", "'").split()).strip(" .!,;:\"'")

    @cached_property
    def text_hash(self) -> str:
        """Return the hash by which a fact that is the same is known at once."""
        return sha256(_LEAD.sub("", self.plain).encode()).hexdigest()

    @cached_property
    def terms(self) -> frozenset[str]:
        """Return the words that say something, without endings; for scripts without spaces pairs of characters."""
        found = {stem(word) for word in _WORD.findall(_UNSPACED.sub(" ", self.plain)) if word not in _STOP}
        for run in _UNSPACED.findall(self.plain):
            found.update(run[at : at + 2] for at in range(max(1, len(run) - 1)))
        return frozenset(found)

    @cached_property
    def trigrams(self) -> frozenset[str]:
        """Return the groups of three letters of its words, by which misspelt words are found."""
        return frozenset(gram for term in self.terms for gram in grams(term))

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        return tuple(sorted(_NUMBER.findall(self.plain)))

    @cached_property
    def negated(self) -> bool:
        """Return whether an odd number of its words turn the meaning around."""
        words = [word for word in _WORD.findall(self.plain) if word in _NEGATIONS]
        return (len(words) + sum(self.plain.count(sign) for sign in _NEGATING_CHARACTERS if len(words) == 0)) % 2 == 1

    @cached_property
    def claims(self) -> frozenset[str]:
        """Return its words without those that negate: what is claimed, or denied."""
        return frozenset(term for term in self.terms if term not in _NEGATION_STEMS)

    @cached_property
    def slot(self) -> str | None:
        """Return what the fact is the one value of, where its words tell."""
        named = _LEAD.sub("", self.plain)
        if (found := _VALUE.match(named)) and not _MANY.search(named):
            return " ".join(word for word in _WORD.findall(found["slot"]) if word not in {"the", "a", "an"})
        if self.numbers:
            return _NUMBER.sub("#", named)
        return None


def stem(word: str) -> str:
    """Return a word without the endings of English plurals and verbs: enough to tell that two words are one."""
    word = word.removesuffix("'s")
    if len(word) <= PLURAL_MIN or not word.isascii():
        return word
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", "")):
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + instead
    return word


def grams(term: str) -> set[str]:
    """Return a word's groups of three letters, its ends marked."""
    edged = f"<{term}>"
    return {edged[at : at + 3] for at in range(max(1, len(edged) - 2))}


_NEGATION_STEMS = frozenset(stem(word) for word in _NEGATIONS)
