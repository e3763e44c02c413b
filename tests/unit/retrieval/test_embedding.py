"""The default embedder compares words and spellings, and says so in its name."""

import subprocess
import sys

import numpy as np
import pytest

from wayline.retrieval.embeddings.embedding import LexicalHash


def cosine(one: str, other: str) -> float:
    first, second = LexicalHash().vectors([one, other])
    return float(first @ second)


def test_an_embedders_name_holds_its_model_and_dimensions():
    assert LexicalHash().model == "lexical-hash-384"
    assert LexicalHash().vectors(["word"]).shape == (1, 384)


@pytest.mark.parametrize("text", ["word", "the of and", "!!!", "", "漢字", "\ud800", "a" * 10_000])
def test_every_text_has_a_vector_of_length_one(text: str):
    assert np.linalg.norm(LexicalHash().vectors([text])[0]) == pytest.approx(1, abs=1e-5)


def test_the_same_text_has_the_same_vector_in_every_process():
    assert LexicalHash().vectors(["The tortoise wins."])[0].nonzero()[0].sum() == 2_611


def test_a_misspelt_word_is_near_and_a_paraphrase_is_not():
    assert cosine("configuration", "configuraton") > 0.4
    assert cosine("automobile", "car") < 0.2


def test_stop_words_do_not_make_two_texts_alike():
    assert cosine("the tortoise of the race", "the history of the world") < 0.3


@pytest.mark.slow
def test_starting_the_service_imports_nothing_heavy():
    heavy = ["numpy", "pgvector", "trafilatura", "pypdf", "httpx2", "lxml"]
    code = f"import sys, wayline.retrieval.app; print([name for name in {heavy} if name in sys.modules])"

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[]"
