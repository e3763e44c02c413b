"""A small embedding model on a socket of its own, asked through the platform's adapter and its vectors of tools."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from wayline.contracts.knowledge import EmbeddedTexts, EmbedTexts
from wayline.retrieval.embeddings.openai_compatible import OpenAICompatible
from wayline.tool_registry.tool_search.tool_embeddings import ToolEmbeddings

MODEL = "all-MiniLM-L6-v2"
SERVER = Path(__file__).with_name("minilm_server.py")
VECTORS_MAX_BYTES = 256 * 1024 * 1024
WAIT_S = 600.0
"""How long the first search may take, which has all tools embedded."""


def python() -> Path:
    """Return the interpreter that has the model; `make tool-search` makes it."""
    return Path(os.environ.get("WAYLINE_NPM", ".wayline/npm"), "minilm/bin/python")


@asynccontextmanager
async def tool_embeddings() -> AsyncIterator[ToolEmbeddings]:
    """Yield vectors of tools that the model makes, which is served meanwhile."""
    process = await asyncio.create_subprocess_exec(python(), SERVER, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        url = f"http://127.0.0.1:{port}/v1"
        provider = OpenAICompatible(model=MODEL, base_url=url, api_key=None, batch=64, timeout_s=60)

        async def embed(ask: EmbedTexts) -> EmbeddedTexts:
            vectors = await provider.embed(ask.texts)
            return EmbeddedTexts(
                model=MODEL, vectors=tuple(base64.b64encode(one.tobytes()).decode() for one in vectors)
            )

        vectors = ToolEmbeddings(embed, wait_s=WAIT_S, kept_max_bytes=VECTORS_MAX_BYTES)
        yield vectors
        await vectors.close()
    finally:
        process.kill()
        await process.wait()
