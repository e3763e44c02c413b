"""`kill -9` around an image that is paid for: it is asked for once, and its job's cost holds what was billed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.simulator.images_api import GPT_MODEL, KEY, ImagesApi
from wayline.testkit.media import png

from .conftest import MakePlatform
from .kill_points import slow
from .platform import TENANT, FaultPlatform, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

TOOL = "image_generate"
COST = Decimal("0.03406")
MOST = Decimal("0.071")
FREE = Prices(rates=Rates(input=Decimal(0), output=Decimal(0)), source="a test")


class Studio:
    """The platform, and what the played provider was asked for and billed."""

    def __init__(self, platform: FaultPlatform, images: ImagesApi) -> None:
        self.platform = platform
        self.images = images

    async def paint(self, job_id: str) -> None:
        """Submit a job that makes one image."""
        painting = {"tools": [[TOOL, {"prompt": f"A lighthouse for {job_id}"}]]}
        await self.platform.submit_plan(
            job_id, painting, says("Here."), agent="painter", model="chat/painter", budget_usd=Decimal("0.10")
        )

    def asked(self, job_id: str) -> int:
        return sum(job_id in body["prompt"] for body in self.images.asked)

    async def end(self, job_id: str) -> None:
        await self.platform.until_ended(job_id)
        await self.platform.until_quiet()
        await self.platform.check(job_id)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def studio(make_platform: MakePlatform) -> AsyncIterator[Studio]:
    platform = await make_platform()
    images = ImagesApi(lambda _: png(1024, 1024))
    async with images.website() as site:
        platform.fleet.set(
            "tool_registry",
            WAYLINE_TOOL_REGISTRY_IMAGE_MODEL=GPT_MODEL,
            WAYLINE_TOOL_REGISTRY_IMAGE_BASE_URL=site.url("/v1"),
            WAYLINE_TOOL_REGISTRY_IMAGE_KEY=KEY,
            WAYLINE_TOOL_REGISTRY_IMAGES_PER_MINUTE="600",
        )
        platform.fleet.set("router", WAYLINE_CHAT_BASE_URL=platform.chat.url)
        await platform.fleet.ensure("router", "tool_registry")
        card = ModelCard(provider="chat", model="painter", tier="standard", prices=FREE)
        await platform.bus.ask(PutModel(tenant=TENANT, card=card), ModelCard)
        config = AgentConfig(tools=("*", TOOL), ask="never")
        await platform.bus.ask(PutAgent(tenant=TENANT, name="painter", config=config), Agent)
        yield Studio(platform, images)


@pytest.mark.parametrize(
    ("point", "nth"),
    [
        # Its money is held, and the registry was not asked.
        slow(Failpoint.EXECUTOR_TOOL_BEFORE, 1),
        # The image came, and nobody has written it down. `make test` has it with a search.
        slow(Failpoint.EXECUTOR_TOOL_AFTER, 1),
        slow(Failpoint.EXECUTOR_INTENT_BEFORE, 2),
        slow(Failpoint.EXECUTOR_INTENT_AFTER, 2),
    ],
)
async def test_an_executor_killed_there_pays_for_the_image_once(studio: Studio, point: Failpoint, nth: int):
    job_id = f"{point}-{nth}".replace(".", "-")
    doomed = await studio.platform.fleet.start("executor", point, nth=nth)
    await studio.paint(job_id)
    await studio.platform.until_dead(doomed, job_id)

    await studio.platform.fleet.start("executor")
    await studio.end(job_id)
    await studio.platform.fleet.stop("executor")

    money = (await studio.platform.job(job_id)).money
    assert studio.asked(job_id) == 1
    # The model's own calls are free.
    assert (money.cost_usd, money.costs.unsettled_upper_usd) == (COST, 0)


@pytest.mark.parametrize(
    ("point", "billed", "known"),
    [
        slow(Failpoint.REGISTRY_LEDGER_BEFORE, 1, True),
        # It may have been asked for: nobody asks again, and the job says what it may have cost.
        slow(Failpoint.REGISTRY_LEDGER_AFTER, 0, False),
        (Failpoint.REGISTRY_EFFECT_AFTER, 1, False),
        slow(Failpoint.REGISTRY_FINISH_AFTER, 1, True),
    ],
)
async def test_a_registry_killed_there_keeps_the_bill_within_bounds(
    studio: Studio, point: Failpoint, billed: int, known: bool
):
    job_id = str(point).replace(".", "-")
    await studio.platform.fleet.stop("tool_registry")
    await studio.platform.fleet.ensure("executor")
    doomed = await studio.platform.fleet.start("tool_registry", point)
    await studio.paint(job_id)
    await studio.platform.until_dead(doomed, job_id)

    await studio.platform.fleet.start("tool_registry")
    await studio.end(job_id)
    await studio.platform.fleet.stop("executor")

    money = (await studio.platform.job(job_id)).money
    assert studio.asked(job_id) == billed
    assert money.cost_usd == (COST if known else 0)
    assert money.costs.unsettled_upper_usd == (0 if known else MOST)
    assert money.cost_usd <= billed * COST <= money.cost_usd + money.costs.unsettled_upper_usd  # type: ignore
