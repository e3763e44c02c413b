"""Vectors come from any endpoint that speaks OpenAI's embeddings API, met here as a real server on a socket."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from wayline.contracts.errors import Retry, Unavailable
from wayline.retrieval.embeddings.openai_compatible import OpenAICompatible
from wayline.retrieval.errors import ProviderRefused


@dataclass
class Provider:
    """Answers each text with [its length, 1], backwards, for the protocol promises no order."""

    base_url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    answer: Callable[[dict[str, Any]], web.Response] | None = None

    async def embeddings(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append(body)
        self.keys.append(request.headers.get("Authorization"))
        if self.answer is not None:
            return self.answer(body)
        data = [
            {"object": "embedding", "index": at, "embedding": [float(len(text)), 1.0]}
            for at, text in enumerate(body["input"])
        ]
        return web.json_response({"object": "list", "data": data[::-1], "usage": {"prompt_tokens": 5}})


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    provider = Provider()
    app = web.Application()
    app.router.add_post("/v1/embeddings", provider.embeddings)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    provider.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield provider
    await runner.cleanup()


def embedder(base_url: str, **settings: Any) -> OpenAICompatible:
    settings = {"api_key": "sk-test", "batch": 2, "timeout_s": 5, **settings}
    return OpenAICompatible(model="some-model", base_url=base_url, **settings)


async def test_batched_texts_come_back_in_order_with_length_one(provider: Provider):
    asking = embedder(provider.base_url, dimensions=2)

    vectors = await asking.embed(["a", "bb", "ccc"])
    await asking.close()

    expected = np.array([[1, 1], [2, 1], [3, 1]], np.float32)
    assert np.allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True))
    asked = {"model": "some-model", "encoding_format": "float", "dimensions": 2}
    assert provider.asked == [{**asked, "input": ["a", "bb"]}, {**asked, "input": ["ccc"]}]
    assert provider.keys == ["Bearer sk-test"] * 2


async def test_without_a_key_a_placeholder_is_sent(provider: Provider):
    await embedder(provider.base_url, api_key=None).embed(["a"])

    assert provider.keys == ["Bearer none"]


@pytest.mark.parametrize(("status", "headers", "after_s"), [(429, {"Retry-After": "7"}, 7), (503, {}, 1)])
async def test_a_busy_provider_is_asked_again_later(provider: Provider, status: int, headers: Any, after_s: float):
    provider.answer = lambda _: web.json_response({}, status=status, headers=headers)

    with pytest.raises(Retry) as error:
        await embedder(provider.base_url).embed(["a"])
    assert error.value.after_s == after_s


async def test_a_provider_that_is_away_is_waited_for():
    with pytest.raises(Unavailable, match="embedding provider"):
        await embedder("http://127.0.0.1:1/v1").embed(["a"])


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (web.json_response({"error": {"message": "wrong key"}}, status=401), "check WAYLINE_RETRIEVAL_EMBEDDING_MODEL"),
        (web.json_response({"hello": "world"}), "does not speak the embeddings API"),
        (web.json_response({"data": []}), "0 vectors for 1 texts"),
        (web.json_response({"data": [{"index": 0, "embedding": [1, [2]]}]}), "vectors of different lengths"),
        (web.json_response({"data": [{"index": 0, "embedding": [{}, 1]}]}), "or no numbers"),
        (web.Response(text="<html>"), "does not speak the embeddings API"),
    ],
)
async def test_a_permanent_failure_names_the_setting_to_check(provider: Provider, reply: web.Response, says: str):
    provider.answer = lambda _: reply

    with pytest.raises(ProviderRefused, match=says):
        await embedder(provider.base_url).embed(["a"])


def counted(sizes: list[int], *, most: int) -> Callable[[dict[str, Any]], web.Response]:
    """A provider that takes so many characters at once, and notes what it took."""

    def answer(body: dict[str, Any]) -> web.Response:
        size = sum(map(len, body["input"]))
        if size > most:
            return web.json_response({"error": {"message": "maximum context length"}}, status=400)
        sizes.append(size)
        data = [{"index": at, "embedding": [float(len(text)), 1.0]} for at, text in enumerate(body["input"])]
        return web.json_response({"data": data})

    return answer


async def test_a_batch_holds_no_more_tokens_than_the_provider_takes(provider: Provider):
    texts = ["word " * 100] * 6
    asking = embedder(provider.base_url, batch=64, batch_max_tokens=300)

    vectors = await asking.embed(texts)

    assert [len(body["input"]) for body in provider.asked] == [2, 2, 2]
    assert len(vectors) == 6
    assert [len(batch) for batch in asking.batches(texts)] == [2, 2, 2]


async def test_a_batch_that_is_too_large_is_asked_for_in_halves(provider: Provider):
    taken: list[int] = []
    provider.answer = counted(taken, most=1_000)

    vectors = await embedder(provider.base_url, batch=64).embed(["word " * 80] * 5)

    assert (len(vectors), taken) == (5, [800, 400, 800])


async def test_a_passage_that_is_too_long_is_embedded_cut(provider: Provider):
    taken: list[int] = []
    provider.answer = counted(taken, most=3_000)

    vectors = await embedder(provider.base_url).embed(["word " * 2_000])
    await embedder(provider.base_url, input_max_tokens=100).embed(["word " * 2_000, "语" * 5_000])

    assert (len(vectors), taken[0]) == (1, 2_500)
    assert taken[1] < 1_000


async def test_a_short_text_that_is_refused_is_asked_once(provider: Provider):
    provider.answer = lambda _: web.json_response({}, status=400)

    with pytest.raises(ProviderRefused):
        await embedder(provider.base_url).embed(["a"])
    assert len(provider.asked) == 1
