"""The built-in tool `image_generate` through whole jobs: what is stored, what it costs, and what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.knowledge import Document, DocumentStatus, GetDocument
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.contracts.tenant_settings import ChangeSettings, SettingsChange, SettingsInForce
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say, Script, turns
from wayline.simulator.images_api import GPT_MODEL, KEY, ImagesApi, error
from wayline.simulator.website import Page
from wayline.testkit import Platform, until
from wayline.testkit.media import png
from wayline.testkit.walks import cases

from .conftest import chatting, http_with_key, until_listed, with_tools
from .ended_jobs import differences

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

TOOL = "image_generate"
# Too large for a message, so that it takes the way through the object store.
PICTURE = png(1024, 1024) + os.urandom(300_000)
COST = Decimal("0.03406")
"""Of an image of the plain quality, with the twelve tokens of its prompt."""
CARD = ModelCard(
    provider="chat",
    model="m",
    tier="standard",
    prices=Prices(rates=Rates(input=Decimal(0), output=Decimal(0)), source="a test"),
)


@dataclass
class Studio:
    """A platform whose registry makes images with a played provider."""

    platform: Platform
    images: ImagesApi
    chat: ChatServer

    def play(self, plan: Script) -> None:
        """Have the model follow a plan."""
        self.chat.script = plan

    async def run(self, job_id: str = "j1", *, tools: tuple[str, ...] = ("*", TOOL), **options: Any) -> Any:
        await self.platform.put_agent("painter", tools=tools, ask="never")
        await self.platform.submit(job_id, agent="painter", model="chat/m", **options)
        return await self.platform.wait_for(job_id)

    async def result(self, job_id: str = "j1") -> e.ToolCompleted:
        [ended] = await self.platform.events_of(job_id, e.ToolCompleted)
        return ended


def painting(**arguments: Any) -> Any:
    call = (TOOL, {"prompt": "A lighthouse at dusk", **arguments})
    return turns(Say(tools=(call,)), Say(text="Here it is."))


@asynccontextmanager
async def studio(platform: Platform, plan: Any, *services: str, **settings: Any) -> AsyncIterator[Studio]:
    picture = settings.pop("picture", PICTURE)
    images = ImagesApi(lambda _: picture)
    images.linked = settings.pop("linked", False)
    async with ChatServer(plan) as chat, images.website() as site:
        registry = {
            "image_model": GPT_MODEL,
            "image_base_url": site.url("/v1"),
            "image_key": KEY,
            "answer_within_s": 20,
            **settings,
        }
        await platform.start(
            *("router", "executor", "tool_registry", "retrieval", *services),
            router=RouterSettings(chat_base_url=chat.url),
            executor=chatting(chat),
            tool_registry=with_tools(**registry),
        )
        await until_listed(platform, TOOL)
        await platform.bus.ask(PutModel(tenant=platform.tenant, card=CARD), ModelCard)
        yield Studio(platform, images, chat)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(module_platform: Platform) -> AsyncIterator[Studio]:
    """One studio for all tests without settings of their own."""
    async with studio(module_platform, painting(), "gateway") as shared:
        yield shared
        assert await differences(module_platform.bus) == []


@pytest_asyncio.fixture(loop_scope="module")
async def place(shared: Studio) -> Studio:
    """The studio as a tenant of the test's own sees it, which has asked for nothing."""
    platform = await shared.platform.new_tenant()
    await platform.bus.ask(PutModel(tenant=platform.tenant, card=CARD), ModelCard)
    shared.chat.calls.clear()
    shared.images.forget()
    return Studio(platform, shared.images, shared.chat)


async def test_an_image_is_stored_and_shown_by_reference_only(place: Studio):
    place.play(painting(shape="landscape"))
    ended = await place.run()
    made = await place.result()
    told = json.loads(made.content)

    async def stored() -> Document | None:
        asked = GetDocument(tenant=place.platform.tenant, document_id=told["document_id"])
        found = await place.platform.bus.ask(asked, Document)
        return found if found.status is DocumentStatus.READY else None

    document = await until(stored, why="the image is stored")
    got = await (await http_with_key(place.platform)).get(told["path"])
    shown = json.dumps(place.chat.calls[-1][1])
    [asked] = place.images.asked

    assert ended.status == "completed"
    assert asked == {
        "model": GPT_MODEL,
        "prompt": "A lighthouse at dusk",
        "n": 1,
        "size": "1536x1024",
        "quality": "medium",
        "output_format": "png",
    }
    assert document is not None
    assert (document.name, document.media_type) == ("A lighthouse at dusk.png", "image/png")
    assert (got.status_code, got.content, got.headers["content-type"]) == (200, PICTURE, "image/png")
    assert told["path"] in shown.replace("\\", "")
    assert made.images == () and "base64" not in shown


async def test_an_image_is_in_its_jobs_cost_as_it_was_billed(place: Studio):
    place.play(painting())
    ended = await place.run(budget_usd="0.10")
    costs = (await place.platform.job("j1")).money.costs

    assert ended.cost_usd == COST == sum(place.images.billed_usd)
    assert (costs.tool, costs.unsettled_calls) == ({TOOL: COST}, 0)


async def test_an_image_beyond_the_budget_is_never_asked_for(place: Studio):
    place.play(painting(quality="high"))
    ended = await place.run(budget_usd="0.10")
    refused = await place.result()

    assert (ended.status, ended.cost_usd, place.images.asked) == ("completed", 0, [])
    assert refused.error is not None and "has no room for a call of up to $0.22" in refused.error.message


async def test_an_agent_that_does_not_name_it_makes_no_images(place: Studio):
    place.play(painting())
    await place.run(tools=("*",))
    refused = await place.result()
    offered = {tool["function"]["name"] for tool in place.chat.calls[0][1]["tools"]}

    assert refused.error is not None and refused.error.code == "unknown_tool"
    assert TOOL not in offered and place.images.asked == []


async def test_a_tenant_that_switches_images_off_makes_none(place: Studio):
    place.play(painting())
    change = ChangeSettings(tenant=place.platform.tenant, change=SettingsChange(images=False))
    await place.platform.bus.ask(change, SettingsInForce)
    await place.run()
    refused = await place.result()

    assert refused.error is not None and refused.error.code == "unknown_tool"
    assert place.images.asked == []


@pytest.mark.parametrize(
    ("refusal", "says"),
    cases(
        [
            (error(400, "moderation_blocked", "no"), "describe another image"),
            (error(401, "invalid_api_key", "no"), "WAYLINE_TOOL_REGISTRY_IMAGE_KEY"),
            (error(429, "insufficient_quota", "You exceeded your quota."), "no credit"),
            (error(404, "model_not_found", "no such model"), "no such model"),
        ]
    ),
)
async def test_a_refused_image_costs_nothing_and_says_why(place: Studio, refusal: Page, says: str):
    place.play(painting())
    place.images.refusals.append(refusal)
    ended = await place.run(budget_usd="0.10")
    refused = await place.result()

    assert refused.error is not None
    assert (refused.error.code, says in refused.error.message) == ("tool_failed", True), refused.error.message
    assert KEY not in refused.error.message
    assert (ended.cost_usd, refused.unsettled) == (0, None)


async def test_an_image_whose_answer_is_lost_leaves_bounds(place: Studio):
    place.play(painting())
    place.images.refusals.append(Page("{}", cut=True))
    ended = await place.run(budget_usd="0.10")
    lost = await place.result()

    assert lost.error is not None and "may have charged" in lost.error.message
    assert (ended.cost_usd, lost.unsettled) == (0, e.Bounds(lower_usd=Decimal(0), upper_usd=Decimal("0.071")))


@pytest.mark.asyncio(loop_scope="function")
async def test_other_models_are_asked_as_older_ones_and_may_link(platform: Platform):
    async with studio(platform, painting(), image_model="sd-local", image_usd="0.002", linked=True) as place:
        ended = await place.run()
        made = await place.result()

    assert place.images.asked[0] == {
        "model": "sd-local",
        "prompt": "A lighthouse at dusk",
        "n": 1,
        "size": "1024x1024",
        "response_format": "b64_json",
    }
    assert (made.status, ended.cost_usd) == ("success", Decimal("0.002"))


@pytest.mark.parametrize(
    ("picture", "says"),
    cases(
        [
            (b"<svg/>", "no PNG"),
            (PICTURE + bytes(60_000), "above the limit of 350000"),
            (bytes(900_000), "too large"),
        ]
    ),
)
@pytest.mark.asyncio(loop_scope="function")
async def test_an_unusable_image_is_charged_and_not_stored(platform: Platform, picture: bytes, says: str):
    async with studio(platform, painting(), picture=picture, image_max_bytes=350_000) as place:
        ended = await place.run(budget_usd="0.10")
        failed = await place.result()

    assert failed.error is not None and says in failed.error.message
    # Where its usage was not read, the prompt is charged as long as it can have been.
    assert ended.cost_usd is not None and COST <= ended.cost_usd < COST + Decimal("0.0001")
