"""Vectors that a bench remembers in a file outside of the repository: embedding takes longer than measuring."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from wayline.retrieval.embeddings.embedding import Embedder

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vectors
    from wayline.retrieval.embeddings.embedding_payments import Payer

VECTORS_FILE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "wayline-bench/vectors.sqlite"
COMMIT_EVERY = 64
"""Texts between two commits: about what is embedded anew where a run is ended."""


class RememberedVectors:
    """An embedder that asks another one only for texts that its file does not have."""

    def __init__(self, embedder: Embedder, file: Path) -> None:
        self._embedder = embedder
        self.model, self.provider, self.kept = embedder.model, embedder.provider, ""
        self.vector_weight, self.vector_weight_unknown = embedder.vector_weight, embedder.vector_weight_unknown
        self.asked_dimensions, self.similarity_min = embedder.asked_dimensions, embedder.similarity_min
        self.background = False
        self._turn = asyncio.Lock()
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(file, timeout=600)
        self._file.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)")

    def batches(self, texts: Sequence[str]) -> list[Sequence[str]]:
        return [texts]

    async def embed(self, texts: Sequence[str], *, payer: Payer | None = None) -> Vectors:
        import numpy as np

        return np.stack([await self._vector(text) for text in texts])

    async def close(self) -> None:
        self._file.commit()
        self._file.close()
        await self._embedder.close()

    async def _vector(self, text: str) -> Vectors:
        import numpy as np

        key = sha256(f"{self._embedder.model}\n{text}".encode(errors="replace")).digest()
        async with self._turn:
            found = self._file.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
            if found is not None:
                return np.frombuffer(found[0], np.float32)
            [vector] = await self._embedder.embed([text])
            self._file.execute(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)", (key, vector.astype(np.float32).tobytes())
            )
            if self._file.total_changes % COMMIT_EVERY == 0:
                self._file.commit()
            return vector
