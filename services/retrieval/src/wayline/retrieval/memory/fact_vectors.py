"""The vectors of facts and of what is asked for: a provider that is away costs the meaning, never the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from wayline.contracts.errors import Reject, Retry
from wayline.retrieval.embeddings.embed_texts import TextEmbedder

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vectors

log = structlog.get_logger()

LEXICAL_WEIGHT = 0.5
"""Of a cosine that only compares words, beside the words themselves."""


@dataclass(frozen=True, slots=True)
class FactVectors:
    """Embeds facts with the installation's embedder."""

    texts: TextEmbedder

    @property
    def model(self) -> str:
        return self.texts.model

    @property
    def weight(self) -> float:
        """Return what a cosine is worth beside words."""
        return 1.0 if self.texts.meaning else LEXICAL_WEIGHT

    @property
    def similarity_min(self) -> float:
        """Return the cosine below which two texts have nothing in common."""
        return max(self.texts.embedder.similarity_min, 0.0)

    async def of(self, tenant: str, texts: Sequence[str]) -> tuple[Vectors | None, str | None]:
        """Return the vectors of texts, or why there are none."""
        if not texts:
            return None, None
        try:
            return (await self.texts.embed(tenant, list(texts), holds=True)).vectors, None
        except (Retry, Reject) as error:
            log.warning("facts are without vectors for now", tenant=tenant, error=str(error))
            return None, f"vectors: {error}"


def cosines(stored: Sequence[Any], asked: Vectors | None) -> list[list[float]]:
    """Return for each asked vector how like it each stored one is: 0 where there is none, or one of another length."""
    import numpy as np

    if asked is None:
        return []
    compared = [at for at, one in enumerate(stored) if one is not None and one.dimensions() == asked.shape[1]]
    found = np.zeros((len(asked), len(stored)), np.float32)
    if compared:
        found[:, compared] = asked @ np.stack([stored[at].to_numpy() for at in compared]).T
    return found.tolist()
