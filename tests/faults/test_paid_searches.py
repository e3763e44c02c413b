"""`kill -9` around a search that is paid for: it is asked for once, and the books hold what was billed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.simulator.search_engine import KEY, Result, SearchEngine

from .conftest import MakePlatform
from .kill_points import slow
from .platform import TENANT, FaultPlatform, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

TOOL = "web_search"
PRICE = Decimal("0.005")
MOST = 2 * PRICE
"""Of one call: that of the search, and of a wider one where it finds nothing."""
NOTHING = Decimal(0)
FREE = Prices(rates=Rates(input=NOTHING, output=NOTHING), source="a test")


class Library:
    """The platform, and what the played provider was asked for."""

    def __init__(self, platform: FaultPlatform, engine: SearchEngine) -> None:
        self.platform = platform
        self.engine = engine
        self.jobs: list[str] = []

    async def search(self, job_id: str) -> None:
        """Submit a job that searches once."""
        self.jobs.append(job_id)
        searching = {"tools": [[TOOL, {"query": f"tides {job_id}"}]]}
        await self.platform.submit_plan(
            job_id, searching, says("Here."), agent="searcher", model="chat/searcher", budget_usd=Decimal("0.015")
        )

    def billed_usd(self, job_id: str) -> Decimal:
        return PRICE * sum(one.query == f"tides {job_id}" for one in self.engine.asked)

    async def end(self, job_id: str) -> None:
        await self.platform.until_ended(job_id)
        await self.platform.until_quiet()
        await self.platform.check(job_id)
        await self.platform.fleet.stop("executor")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def library(make_platform: MakePlatform) -> AsyncIterator[Library]:
    platform = await make_platform("tracing")
    engine = SearchEngine(lambda asked: [Result("Tides", "https://sea.example/", "They rise.")])
    async with engine.website() as site:
        platform.fleet.set(
            "tool_registry",
            WAYLINE_TOOL_REGISTRY_WEB_SEARCH_PROVIDER="brave",
            WAYLINE_TOOL_REGISTRY_WEB_SEARCH_URL=site.url("/res/v1"),
            WAYLINE_TOOL_REGISTRY_WEB_SEARCH_KEY=KEY,
            WAYLINE_TOOL_REGISTRY_WEB_SEARCH_COST_USD=str(PRICE),
        )
        platform.fleet.set("router", WAYLINE_CHAT_BASE_URL=platform.chat.url)
        await platform.fleet.ensure("router", "tool_registry", "tracing")
        card = ModelCard(provider="chat", model="searcher", tier="standard", prices=FREE)
        await platform.bus.ask(PutModel(tenant=TENANT, card=card), ModelCard)
        config = AgentConfig(tools=("*", TOOL), ask="never")
        await platform.bus.ask(PutAgent(tenant=TENANT, name="searcher", config=config), Agent)
        yield Library(platform, engine)


@pytest.mark.parametrize("point", [slow(Failpoint.EXECUTOR_TOOL_BEFORE), Failpoint.EXECUTOR_TOOL_AFTER], ids=str)
async def test_an_executor_killed_there_pays_for_the_search_once(library: Library, point: Failpoint):
    job_id = str(point).replace(".", "-")
    await library.platform.fleet.ensure("tool_registry")
    doomed = await library.platform.fleet.start("executor", point)
    await library.search(job_id)
    await library.platform.until_dead(doomed, job_id)

    await library.platform.fleet.start("executor")
    await library.end(job_id)

    money = (await library.platform.job(job_id)).money
    assert library.billed_usd(job_id) == PRICE
    assert (money.cost_usd, money.costs.unsettled_upper_usd) == (PRICE, NOTHING)


@pytest.mark.parametrize(
    ("point", "billed", "known"),
    [
        slow(Failpoint.REGISTRY_LEDGER_BEFORE, PRICE, True),
        slow(Failpoint.REGISTRY_LEDGER_AFTER, NOTHING, False),
        # The provider has answered, and nobody has written it down: what it may have cost is held and said. `make test`
        # has it with an image.
        slow(Failpoint.REGISTRY_EFFECT_AFTER, PRICE, False),
        slow(Failpoint.REGISTRY_FINISH_AFTER, PRICE, True),
    ],
    ids=str,
)
async def test_a_registry_killed_there_pays_for_the_search_once(
    library: Library, point: Failpoint, billed: Decimal, known: bool
):
    job_id = str(point).replace(".", "-").replace("_", "-")
    await library.platform.fleet.stop("tool_registry")
    await library.platform.fleet.ensure("executor")
    doomed = await library.platform.fleet.start("tool_registry", point)
    await library.search(job_id)
    await library.platform.until_dead(doomed, job_id)

    await library.platform.fleet.start("tool_registry")
    await library.end(job_id)

    money = (await library.platform.job(job_id)).money
    [ended] = [one for one in await library.platform.events(job_id) if isinstance(one, e.ToolCompleted)]
    assert library.billed_usd(job_id) == billed
    assert money.cost_usd == (PRICE if known else NOTHING)
    assert money.costs.unsettled_upper_usd == (NOTHING if known else MOST)
    assert (ended.status, ended.error and ended.error.code) == (("success", None) if known else ("failed", "timeout"))


@pytest.mark.slow
async def test_the_ledger_of_searches_is_what_the_provider_billed(library: Library):
    await library.platform.until_traced(*library.jobs)
    rows = await library.platform.sql(
        "SELECT job_id, cost_usd, lower_usd, upper_usd FROM tracing.ledger WHERE kind = 'tool'"
    )

    unsure = {row["job_id"]: row["upper_usd"] for row in rows if row["upper_usd"]}
    assert len(library.jobs) >= 6
    assert unsure.keys() == {"tool-registry-ledger-after", "tool-registry-effect-after"}
    for row in rows:
        billed = library.billed_usd(row["job_id"])
        assert (row["cost_usd"] or NOTHING) <= billed <= (row["cost_usd"] or NOTHING) + (row["upper_usd"] or NOTHING)
    settled = sum((row["cost_usd"] or NOTHING for row in rows), NOTHING)
    lost = sum((library.billed_usd(job_id) for job_id in unsure), NOTHING)
    assert settled + lost == PRICE * len(library.engine.asked)
