"""The embedder on board: queries in this process, documents in one of their own that gives way to everything else."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

import structlog

from wayline.contracts.errors import Unavailable
from wayline.retrieval.embeddings.minilm.model import DIMENSIONS, MODEL, TOKENS_MAX, MiniLM
from wayline.retrieval.embeddings.minilm.wordpiece import WordPiece

if TYPE_CHECKING:
    from wayline.retrieval.embeddings.embedding import Vectors
    from wayline.retrieval.embeddings.embedding_payments import Payer

log = structlog.get_logger()

BATCH = 8
"""Passages between two that are kept: about half a second of work."""
ANSWER_WITHIN_S = 120.0
"""A batch takes longer only where the machine has nothing left for it."""
IDLE_MAX_S = 60.0
"""After so long without a document its process ends."""
FLOAT_BYTES = 4


class OnBoard:
    """all-MiniLM-L6-v2 in this process, loaded when the first text comes; one text at a time."""

    model = kept = MODEL
    provider = "wayline"
    background = True
    asked_dimensions: int | None = None
    vector_weight = vector_weight_unknown = 0.5
    # Texts that have nothing to do with each other are around 0.
    similarity_min = 0.1

    def __init__(self, *, threads: int) -> None:
        self._threads = threads
        self._model: MiniLM | None = None
        # One thread: the bound of what queries take, and the model is loaded once.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="minilm")

    async def embed(self, texts: Sequence[str], *, payer: Payer | None = None) -> Vectors:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._vectors, list(texts))

    def batches(self, texts: Sequence[str]) -> list[Sequence[str]]:
        """Divide texts into what is kept at once."""
        return _batches(texts)

    async def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _vectors(self, texts: list[str]) -> Vectors:
        if self._model is None:
            self._model = MiniLM(threads=self._threads)
        return self._model.vectors(texts)


HEADING_TOKENS = 32
"""Of what the model reads, left for the name and the headings of a passage, which are embedded with it."""
PASSAGE_TOKENS_MAX = TOKENS_MAX - HEADING_TOKENS


class PassageTokens:
    """Counts the tokens of passages as the model does; its vocabulary is loaded with the first."""

    @cached_property
    def _pieces(self) -> WordPiece:
        return WordPiece()

    def __call__(self, text: str) -> int:
        """Return the tokens of a text."""
        return self._pieces.count(text)


class OnBoardDocuments:
    """The same model in a process of the lowest priority, which lives while there are documents."""

    model = kept = MODEL
    provider = "wayline"
    background = True
    asked_dimensions: int | None = None
    vector_weight = vector_weight_unknown = OnBoard.vector_weight
    similarity_min = OnBoard.similarity_min

    def __init__(self, *, threads: int) -> None:
        self._threads = threads
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None

    async def embed(self, texts: Sequence[str], *, payer: Payer | None = None) -> Vectors:
        """Embed texts, after those that wait already. Raises Unavailable where the process ends."""
        async with self._turn:
            if self._idle is not None:
                self._idle.cancel()
            try:
                async with asyncio.timeout(ANSWER_WITHIN_S):
                    return await self._asked(list(texts))
            except (OSError, EOFError, TimeoutError) as error:
                self._end()
                raise Unavailable("the process that embeds documents", detail=type(error).__name__) from error
            except asyncio.CancelledError:
                # An answer under way would be taken for the next one's.
                self._end()
                raise
            finally:
                self._idle = asyncio.get_running_loop().call_later(IDLE_MAX_S, self._end)

    def batches(self, texts: Sequence[str]) -> list[Sequence[str]]:
        """Divide texts into what is kept at once."""
        return _batches(texts)

    async def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        process = self._process
        self._end()
        if process is not None:
            await process.wait()

    async def _asked(self, texts: list[str]) -> Vectors:
        import numpy as np

        if self._process is None or self._process.returncode is not None:
            self._process = await self._started()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(texts).encode() + b"\n")
        await stdin.drain()
        answer = await stdout.readexactly(len(texts) * DIMENSIONS * FLOAT_BYTES)
        return np.frombuffer(answer, "<f4").reshape(len(texts), DIMENSIONS)

    async def _started(self) -> asyncio.subprocess.Process:
        log.info("a process embeds documents", model=MODEL, threads=self._threads)
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-m", __package__ or "", str(self._threads))
        # Ctrl-C in a terminal reaches every process of its group: this one is the service's to end.
        return await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, start_new_session=True)

    def _end(self) -> None:
        """End the process; one that is killed with this one reads the end of its input."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()


def _batches(texts: Sequence[str]) -> list[Sequence[str]]:
    return [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]
