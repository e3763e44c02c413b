"""An executor has the clients it is going to need before a job needs them."""

import pytest

from wayline.executor.adapters import sdk_warmup
from wayline.executor.settings import Settings
from wayline.llm.anthropic import Anthropic
from wayline.llm.openai import OpenAI
from wayline.simulator import Say, Simulator
from wayline.testkit import until

from .conftest import ExecutorPlatform
from .test_usage import CARDS, GPT


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The clients that were made."""
    found: list[str] = []
    for adapter in (Anthropic, OpenAI):

        def client(self, *args, _make=adapter.client):
            found.append(type(self).__name__)
            return _make(self, *args)

        monkeypatch.setattr(adapter, "client", client)
    return found


async def test_what_is_configured_is_made_ready_once_and_nothing_else(
    platform: ExecutorPlatform, made: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sdk_warmup, "WARM_AFTER_S", 0.0)
    async with Simulator(lambda _: Say(text="so")) as simulator:
        await platform.start(
            "executor", executor=Settings(openai_base_url=simulator.openai_url, openai_api_key="simulated")
        )
        await until(lambda: made == ["OpenAI"], why="the client is there before a job is")
        await platform.begin("j1", GPT, cards=CARDS)

        assert (await platform.wait_for("j1")).answer == "so"
    assert made == ["OpenAI"]


async def test_a_job_that_is_there_before_does_not_wait_for_it(platform: ExecutorPlatform, made: list[str]):
    async with Simulator(lambda _: Say(text="so")) as simulator:
        await platform.start(
            "executor", executor=Settings(openai_base_url=simulator.openai_url, openai_api_key="simulated")
        )
        await platform.begin("j1", GPT, cards=CARDS)

        assert (await platform.wait_for("j1")).answer == "so"
    assert made == ["OpenAI"]
