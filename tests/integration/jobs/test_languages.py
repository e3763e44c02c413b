"""English and Chinese come through byte for byte, wherever a user or a model reads them, on two wires."""

# ruff: noqa: RUF001 - Chinese has its own punctuation.

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import pytest
import pytest_asyncio
from mcp.server import MCPServer

from wayline.contracts import events as e
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked, Say, Simulator
from wayline.testkit import Platform, until
from wayline.testkit.mcp_servers import serving

from .conftest import http_with_key, until_listed, with_tools
from .ended_jobs import differences

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

WIRES = {"anthropic": "anthropic/claude-sonnet-5-5", "openai": "openai/gpt-6.1-terra"}
FIND = "shop__find"
RULE = "In the language of the user's last message"


@dataclass(frozen=True)
class Words:
    """What a user and a model say in one language."""

    question: str
    item: str
    answer: str
    thanks: str


ENGLISH = Words("Where is order A-17?", "Red shoes", "**Red shoes** (`A-17`): it’s on its way – 2 days.", "Thank you!")
# With characters beyond the basic plane, which JSON may write as two halves.
CHINESE = Words("订单 A-17 在哪里？", "红色运动鞋𠮷", "**红色运动鞋𠮷**（`A-17`）：正在派送，还需 2 天。𪚥", "谢谢！")


@dataclass
class Shop:
    """A platform with a tool that names the order it found, and what was streamed of each job."""

    platform: Platform
    provider: Simulator
    words: Words
    model: str
    streamed: defaultdict[str, str] = field(default_factory=lambda: defaultdict(str))

    async def hear(self) -> None:
        async def hear(message: Any) -> None:
            self.streamed[message.subject.rpartition(".")[2]] += orjson.loads(message.data)["text"]

        await self.platform.bus.nc.subscribe(f"deltas.{self.platform.tenant}.>", cb=hear)

    async def say(self, job_id: str, text: str, *, agent: str = "assistant") -> str:
        """Submit a turn of one user's session, and return its answer."""
        body = {"agent": agent, "input": text, "job_id": job_id, "session_id": f"of {agent}", "user_id": "ann"}
        await self.platform.publish({**body, "options": {"model": self.model, "budget_usd": "5"}})
        job = await self.platform.wait_for(job_id)
        assert job.status == "completed", job.error
        return job.answer or ""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(module_platform: Platform) -> AsyncIterator[Shop]:
    """The services and their tool; what they say, each test tells."""
    mcp = MCPServer("shop")
    provider = await module_platform.simulate(lambda _: Say())
    shop = Shop(module_platform, provider, ENGLISH, WIRES["anthropic"])

    @mcp.tool()
    def find(number: str) -> dict[str, Any]:
        """Find an order."""
        return {"status": "sent", "entities": [{"type": "order", "id": number, "name": shop.words.item}]}

    def says(asked: Asked) -> Say:
        if shop.words.question in asked.text and not asked.results:
            return Say(tools=((FIND, {"number": "A-17"}),))
        return Say(text=shop.words.answer)

    provider.script = says
    async with serving(mcp) as url:
        urls: dict[str, Any] = {"anthropic_base_url": provider.url, "openai_base_url": provider.openai_url}
        await module_platform.start(
            *("router", "tool_registry", "executor", "gateway"),
            router=RouterSettings(**urls),
            executor=ExecutorSettings(**urls, tool_wait_s=2.0),
            tool_registry=with_tools({"name": "shop", "url": url, "effects": {"find": "read"}}),
        )
        await until_listed(module_platform, FIND)
        yield shop
        assert await differences(module_platform.bus) == []


@pytest_asyncio.fixture(loop_scope="module", params=WIRES, ids=WIRES.get)
async def shop(shared: Shop, words: Words, request: pytest.FixtureRequest) -> Shop:
    """The shop as a tenant of the test's own sees it, in one language and on one wire."""
    shared.words = words
    shared.provider.play(shared.provider.script)
    platform = await shared.platform.new_tenant()
    shop = replace(shared, platform=platform, model=WIRES[request.param], streamed=defaultdict(str))
    await shop.hear()
    return shop


@pytest.mark.parametrize("words", [ENGLISH, CHINESE], ids=["English", "Chinese"])
async def test_a_conversation_keeps_its_language_byte_for_byte(shop: Shop, words: Words):
    answer = await shop.say("j1", words.question)

    assert answer == words.answer
    await until(lambda: shop.streamed["j1"] == words.answer, why="all deltas are heard")
    first, second = shop.provider.requests
    assert all(RULE in " ".join(asked.system.split()) for asked in (first, second))
    assert words.question in first.text
    [note] = [one.note for one in await shop.platform.events_of("j1", e.ContextInjected)]
    assert (note.label, note.text.splitlines()[1]) == ("CONTEXT UPDATE", f'- order "A-17" "{words.item}" (from {FIND})')
    assert f'"{words.item}"' in second.turns[-1].text

    http = await http_with_key(shop.platform)
    store = await shop.platform.store("router")
    ended = "SELECT ended_at IS NOT NULL FROM latest_results WHERE job_id = 'j1'"
    await until(lambda: store.fetchval(shop.platform.tenant, ended), why="the end is kept")
    latest = (await http.get("/v1/agents/assistant/latest", params={"user_id": "ann"})).json()
    assert latest["outcome"]["answer"] == words.answer

    await shop.say("j2", words.thanks)
    asked = shop.provider.requests[-1]
    assert (asked.text, asked.turns[-2].text) == (words.thanks, words.answer)


@pytest.mark.parametrize("words", [CHINESE], ids=["Chinese"])
async def test_an_agent_of_one_language_says_so_last(shop: Shop, words: Words):
    await shop.platform.put_agent("clerk", instructions="You are a clerk.", language="Chinese", tools=("shop__*",))

    assert await shop.say("j1", "Where is order A-17?", agent="clerk") == words.answer

    [asked] = shop.provider.requests
    assert asked.system.endswith("\n\nAlways answer in Chinese, whatever the language of the question.")
