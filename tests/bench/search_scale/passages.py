"""Many passages with vectors: each of two real ones of the public sets, half of the words of either, the vectors mixed.

So words are as often as people use them, and vectors lie as a real model's do. No passage is a real one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.bench import retrieval_quality as quality
from wayline.contracts.knowledge import IndexDocument
from wayline.documents.reader_pool import ReaderPool
from wayline.retrieval.documents.cut_passages import cut_passages
from wayline.retrieval.documents.decode_document import Limits, decode
from wayline.retrieval.documents.document import embeddable
from wayline.retrieval.documents.wiring import passage_size
from wayline.retrieval.settings import Settings

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Embedder, Vectors

NOISE = 0.15
"""The length of what is added to a mixed vector of length 1, so that no two of the same pair are alike."""
SHORT_WORDS = 12
"""Of a short passage."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True)
class Real:
    """What people wrote: passages with their vectors, and questions with theirs."""

    texts: Sequence[str]
    vectors: Vectors
    questions: dict[str, Vectors]


async def load_real(data: Path, embedder: Embedder, *, each_set_max: int) -> Real:
    """Load passages and questions of the public sets that are there, as the service would cut and embed them."""
    settings = Settings()
    size = passage_size(settings)
    limits = Limits(settings.document_bytes_max, settings.pdf_pages_max, settings.read_seconds_max, 16_384)
    texts: list[str] = []
    vectors: list[Vectors] = []
    questions: dict[str, Vectors] = {}
    for judged in filter(None, (quality.load_set(name, data) for name in quality.SETS)):
        cut: list[tuple[str, str]] = []
        for item in judged.documents.values():
            if len(cut) >= each_set_max or not item["text"].strip():
                continue
            name = item["title"][:500] or "-"
            asked = IndexDocument(tenant="t", document_id=item["_id"], name=name, text=item["text"])
            pages = (await decode(asked, limits, ReaderPool())).pages
            cut += [(embeddable(name, piece), piece.text) for piece in cut_passages(item["_id"], pages, size)]
        texts += [text for _, text in cut]
        vectors.append(await embedder.embed([told for told, _ in cut]))
        asked_texts = list(judged.queries.values())
        questions |= dict(zip(asked_texts, await embedder.embed(asked_texts), strict=True))
    if not texts:
        raise SystemExit("The public sets are not here: name their folder with --data or WAYLINE_SHARED.")
    return Real(texts, np.concatenate(vectors), questions)


class Mixer:
    """Makes passages without end, the same ones for the same seed."""

    def __init__(self, real: Real, *, seed: int) -> None:
        self._real = real
        self._halves = [_halves(text) for text in real.texts]
        self._random = random.Random(seed)
        self._numbers = np.random.default_rng(seed)

    def passage(self) -> tuple[str, Vectors]:
        """Return one passage and its vector."""
        # Of the same set most of the time: neighbours in the list are of one subject.
        one = self._random.randrange(len(self._halves))
        other = (one + self._random.randrange(1, 2_000)) % len(self._halves)
        text = f"{self._halves[one][0]} {self._halves[other][1]}"
        share = self._random.uniform(0.3, 0.7)
        mixed = share * self._real.vectors[one] + (1 - share) * self._real.vectors[other]
        noise = self._numbers.standard_normal(mixed.shape[0]).astype(np.float32)
        mixed = mixed / np.linalg.norm(mixed) + noise * np.float32(NOISE / np.linalg.norm(noise))
        return text, (mixed / np.linalg.norm(mixed)).astype(np.float32)

    def short(self) -> str:
        """Return a passage of a few words that stand together in a real one."""
        words = self._random.choice(self._real.texts).split()
        at = self._random.randrange(max(1, len(words) - SHORT_WORDS))
        return " ".join(words[at : at + SHORT_WORDS])


def _halves(text: str) -> tuple[str, str]:
    sentences = _SENTENCE.split(text)
    if len(sentences) < 2:
        words = text.split()
        return " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])
    return " ".join(sentences[: len(sentences) // 2]), " ".join(sentences[len(sentences) // 2 :])
