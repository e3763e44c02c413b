"""Turn texts into vectors: what an embedder is, and the default one, which needs nothing and understands nothing."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Protocol, TypeAlias
from zlib import crc32

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wayline.retrieval.embeddings.embedding_payments import Payer

    Vector: TypeAlias = NDArray[np.float32]
    Vectors: TypeAlias = NDArray[np.float32]

GRAM = 3
GRAM_WEIGHT = 1.5
LONG_WEIGHT, LONG_MAX = 0.3, 2.5
"""Long words are rare ones: each letter adds to a word's weight, up to a limit."""
NUMBER_WEIGHT = 0.3
WORDS_CACHED_MAX = 50_000
HERE_CHARS_MAX = 500
"""Of texts whose vectors take less time than a thread takes to begin and tell."""
MEANING_MIN = 0.1
"""What vectors have to be worth beside words where an embedder understands meaning."""
DIMENSIONS = 384
"""Of a lexical vector; another number would be another model."""

_TOKEN = re.compile(r"[^\W_]+")
_STOP = frozenset(
    "a an and are as at be been but by can could did do does for from had has have he her his how i if in into is it "
    "its me my no not of on or our she should so such t than that the their them then there these they this those to "
    "was we were what when where which who why will with would you your s".split()
)


class Embedder(Protocol):
    """Makes vectors that can be compared with each other and with no other embedder's."""

    model: str
    provider: str
    vector_weight: float
    """What the vector leg is worth in hybrid search when the query does not say."""
    vector_weight_unknown: float
    """The same where passages do not know most of the query's words."""
    kept: str
    """The name under which its vectors are kept, that says all that they depend on; empty: they cost too little."""
    asked_dimensions: int | None
    """Of what it asks its provider for; None: what the model gives."""
    background: bool
    """Whether documents get its vectors after they are searchable by words: it takes long."""
    similarity_min: float
    """A cosine below this says nothing: such a passage is not found."""

    async def embed(self, texts: Sequence[str], *, payer: Payer | None = None) -> Vectors:
        """Embed texts as rows of length 1. Raises Retry while the provider is away, and what `payer` raises."""
        ...

    def batches(self, texts: Sequence[str]) -> list[Sequence[str]]:
        """Divide texts, in their order, into what is asked for at once."""
        ...

    async def close(self) -> None: ...


class LexicalHash:
    """Feature hashing of words and of pieces of words: near texts share words or spellings, not meaning.

    It finds misspellings, other endings of a word and scripts that the full-text parser cannot cut; a paraphrase
    without a common word it does not find.
    """

    provider = "wayline"
    # Measured: 0.5 loses up to a quarter of nDCG@10 against words alone, 0.05 up to a hundredth. So little leaves the
    # order of the words as it is, and lets vectors fill the places that words leave.
    vector_weight = 0.001
    # Measured with misspelt queries: as good as the better of both.
    vector_weight_unknown = 0.05
    # Texts without a word in common differ from 0 by the noise of hashing, about 1 / sqrt(DIMENSIONS).
    similarity_min = 0.1
    kept = ""
    background = False
    asked_dimensions: int | None = None

    def __init__(self) -> None:
        self.model = f"lexical-hash-{DIMENSIONS}"
        self._features: dict[str, tuple[NDArray[np.intp], Vectors]] = {}

    async def embed(self, texts: Sequence[str], *, payer: Payer | None = None) -> Vectors:
        if sum(map(len, texts)) <= HERE_CHARS_MAX:
            return self.vectors(texts)
        return await asyncio.to_thread(self.vectors, texts)

    def batches(self, texts: Sequence[str]) -> list[Sequence[str]]:
        """Return all texts as one batch."""
        return [texts]

    async def close(self) -> None:
        pass

    def vectors(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Vectors:
        import numpy as np

        words = _TOKEN.findall(text.lower())
        # A text of nothing but stop words or signs still needs a direction: a zero vector has no cosine.
        kept = [word for word in words if word not in _STOP] or words or [text or " "]
        vector = np.zeros(DIMENSIONS, np.float32)
        for word, times in Counter(kept).items():
            index, weight = self._of(word)
            np.add.at(vector, index, weight * np.float32(1 + log(times)))
        length = float(np.linalg.norm(vector))
        if length == 0:  # every feature met its opposite
            vector[0] = length = 1.0
        return vector / np.float32(length)

    def _of(self, word: str) -> tuple[NDArray[np.intp], Vectors]:
        """Return the places and weights of a word's features: itself, and its pieces."""
        known = self._features.get(word)
        if known is None:
            known = self._hashed(word)
            if len(self._features) >= WORDS_CACHED_MAX:
                self._features.clear()
            self._features[word] = known
        return known

    def _hashed(self, word: str) -> tuple[NDArray[np.intp], Vectors]:
        import numpy as np

        edged = f"<{word}>"
        grams = [edged[at : at + GRAM] for at in range(max(1, len(edged) - GRAM + 1))]
        hashes = [crc32(f"w{word}".encode("utf-8", "replace"))]
        hashes += [crc32(f"g{gram}".encode("utf-8", "replace")) for gram in grams]
        own = NUMBER_WEIGHT if word.isdigit() else min(LONG_MAX, 1 + LONG_WEIGHT * len(word))
        weights = [own] + [own * GRAM_WEIGHT / len(grams) ** 0.5] * len(grams)
        signed = [weight if value & 0x80000000 else -weight for value, weight in zip(hashes, weights, strict=True)]
        places = [(value & 0x7FFFFFFF) % DIMENSIONS for value in hashes]
        return np.array(places, np.intp), np.array(signed, np.float32)


def joined(batches: Sequence[Vectors]) -> Vectors:
    """Return the rows of all batches, in order."""
    import numpy as np

    return np.concatenate(batches)
