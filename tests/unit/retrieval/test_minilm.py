"""The model on board cuts and embeds texts as its reference does: the fp32 model and its tokenizer made the file."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wayline.contracts.errors import Unavailable
from wayline.retrieval.documents.chunking import chunk
from wayline.retrieval.documents.wiring import passage_size
from wayline.retrieval.embeddings import embedders
from wayline.retrieval.embeddings.embedders import Embedders
from wayline.retrieval.embeddings.minilm.model import TOKENS_MAX
from wayline.retrieval.embeddings.minilm.on_board import PASSAGE_TOKENS_MAX, OnBoard, OnBoardDocuments
from wayline.retrieval.embeddings.minilm.wordpiece import WordPiece
from wayline.retrieval.settings import ON_BOARD_MODEL, Settings
from wayline.testkit import until

REFERENCE = json.loads((Path(__file__).parent / "minilm_reference.json").read_text())
TEXTS = [one["text"] for one in REFERENCE]
NOTES = (
    "Invoices are paid within thirty days.",
    "The client's office is in Hamburg.",
    "Client loves sea views",
    "He asked for a call on Monday morning.",
    "The contract ends in December.",
    "A new printer was ordered.",
    "The budget for travel is used up.",
    "Parking is behind the building.",
)


def reference_vector(one: Any) -> Any:
    return np.frombuffer(base64.b64decode(one["vector"]), "<f2").astype(np.float32)


@pytest.fixture
async def on_board() -> AsyncIterator[OnBoard]:
    embedder = OnBoard(threads=1)
    yield embedder
    await embedder.close()


@pytest.fixture
async def documents() -> AsyncIterator[OnBoardDocuments]:
    embedder = OnBoardDocuments(threads=1)
    yield embedder
    await embedder.close()


@pytest.mark.parametrize("one", REFERENCE, ids=lambda one: ascii(one["text"])[:20])
def test_a_text_has_the_pieces_of_the_reference_tokenizer(one: Any):
    assert WordPiece().encode(one["text"], tokens_max=TOKENS_MAX) == one["ids"]


@pytest.mark.parametrize(
    "text",
    [
        "It\u2019s  5 p.m.,\u00a0naïve\tcafé—no\u200bbreak",
        "的語 mixed, 語.",
        "\ufffdÉtat\u0301 re-use",
        "x" * 150 + " y" * 3,
    ],
)
def test_counted_pieces_are_those_that_are_cut(text: str):
    pieces = WordPiece()

    counted = [pieces.count(text) for _ in range(2)]

    assert counted == [len(pieces.encode(text, tokens_max=500)) - 2] * 2


async def test_vectors_are_those_of_the_full_model_to_a_hundredth(on_board: OnBoard):
    vectors = await on_board.embed(TEXTS)

    cosines = {
        one["text"]: float(vector @ reference_vector(one)) for one, vector in zip(REFERENCE, vectors, strict=True)
    }
    assert {text: cosine for text, cosine in cosines.items() if cosine < 0.99} == {}
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


async def test_a_note_is_found_by_what_it_means(on_board: OnBoard):
    [asked] = await on_board.embed(["What does the client like?"])
    ranked = np.argsort(-(await on_board.embed(NOTES) @ asked))

    assert "Client loves sea views" in [NOTES[at] for at in ranked[:2]]


async def test_documents_get_the_vectors_of_queries_from_another_process(
    on_board: OnBoard, documents: OnBoardDocuments
):
    assert np.allclose(await documents.embed(TEXTS[:3]), await on_board.embed(TEXTS[:3]), atol=1e-6)


async def test_a_killed_process_is_away_and_started_again(documents: OnBoardDocuments):
    await documents.embed(["a"])
    first = documents._process
    assert first is not None
    first.kill()
    await until(lambda: first.returncode is not None, why="the process has ended")

    assert (await documents.embed(["a"])).shape == (1, 384)
    second = documents._process
    assert second is not None
    asked = asyncio.create_task(documents.embed(["word " * 300] * 50))
    await asyncio.sleep(0)
    second.kill()
    with pytest.raises(Unavailable):
        await asked


async def test_ctrl_c_of_a_terminal_is_left_to_the_service(documents: OnBoardDocuments):
    await documents.embed(["the sea"])
    process = documents._process
    assert process is not None

    # A terminal sends it to every process of its group.
    assert os.getpgid(process.pid) != os.getpgid(0)


def test_the_licences_ship_with_the_model():
    folder = files("wayline.retrieval.embeddings.minilm")

    assert "Apache License" in folder.joinpath("LICENSE").read_text()
    assert "all-MiniLM-L6-v2" in folder.joinpath("NOTICE").read_text()


def test_passages_have_no_more_tokens_than_the_model_reads():
    size = passage_size(Settings(embedding_model=ON_BOARD_MODEL))
    pieces = WordPiece()
    texts = [
        "Прилив приходит дважды в сутки, и вода стоит высоко. ",
        "潮水每天上涨两次。",
        "The tides rise twice a day. ",
    ]

    passages = [passage for text in texts for passage in chunk(text * 100, size=size)]

    longest = max(len(pieces.encode(passage.text, tokens_max=1_000)) for passage in passages)
    assert PASSAGE_TOKENS_MAX - 40 < longest <= PASSAGE_TOKENS_MAX + 2


def test_the_model_on_board_is_the_default_where_it_can_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("WAYLINE_RETRIEVAL_EMBEDDING_MODEL", raising=False)
    assert Embedders(Settings()).default.model == "all-MiniLM-L6-v2-int8"

    monkeypatch.setattr(embedders, "find_spec", lambda name: None)
    assert Embedders(Settings()).default.model == "lexical-hash-384"
