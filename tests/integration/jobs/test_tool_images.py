"""From an MCP server to the provider's wire: models are shown the images that a tool returns."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

import mcp_types as types
import orjson
import pytest
import pytest_asyncio
from mcp.server.lowlevel import Server

from wayline.chassis.claim_check.claims import MESSAGE_MAX
from wayline.contracts import events as e
from wayline.contracts.jobs import JobView
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Say, Simulator, rounds
from wayline.testkit import Platform
from wayline.testkit.mcp_servers import serving
from wayline.testkit.media import png
from wayline.testkit.walks import cases

from .conftest import with_tools
from .ended_jobs import differences
from .four_models import BLIND, CLAUDE, FACTS, FOUR, endpoints, put_own

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SMALL = png(640, 480)
LARGE = png(1_280, 720) + Random(1).randbytes(400_000)
"""More than one message of the bus may hold."""
PICTURES = {"small.png": SMALL, "large.png": LARGE}
NOTES = ("Here it is.\n[image image/png, 640x480]", "Here it is.\n[image image/png, 1280x720]")
TALK = (
    Say(tools=(("camera__shot", {"of": "small.png"}),)),
    Say(tools=(("camera__shot", {"of": "large.png"}),)),
    Say(text="A wall."),
)


async def offered(*_: object) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="shot", input_schema={"type": "object"})])


async def taken(_: object, called: types.CallToolRequestParams) -> types.CallToolResult:
    data = base64.b64encode(PICTURES[(called.arguments or {})["of"]]).decode()
    shown = types.ImageContent(type="image", data=data, mime_type="image/png")
    return types.CallToolResult(content=[types.TextContent(type="text", text="Here it is."), shown])


@dataclass
class CameraJobs:
    """Jobs with a tool that takes pictures: the platform and the simulated providers."""

    platform: Platform
    simulator: Simulator

    async def run(self, model: str) -> JobView:
        await self.platform.publish(
            {"agent": "looker", "input": "Look.", "job_id": "j1", "options": {"model": model, "budget_usd": "1"}}
        )
        return await self.platform.wait_for("j1")

    def sent(self) -> list[list[bytes]]:
        """The images in each request, as the provider got them."""
        return [[*images_in(each.body)] for each in self.simulator.requests]

    async def records(self) -> list[bytes]:
        """The log as it is stored."""
        js = self.platform.bus.js
        state = (await js.stream_info("EVENTS")).state
        stored = [await js.get_msg("EVENTS", n) for n in range(state.first_seq, state.last_seq + 1)]
        return [message.data or b"" for message in stored]

    def billed(self) -> Decimal:
        return sum((charge.usd for charge in self.simulator.bill.charges), Decimal(0))


def images_in(value: Any) -> Any:
    """What is in a body in base64, whichever wire format has it."""
    if isinstance(value, dict):
        for key, held in value.items():
            if key == "data" or (isinstance(held, str) and held.startswith("data:")):
                yield base64.b64decode(held.rpartition(",")[2])
            else:
                yield from images_in(held)
    elif isinstance(value, list):
        for held in value:
            yield from images_in(held)


def unmarked(value: Any) -> Any:
    """A body without its markers, which move from call to call."""
    if isinstance(value, dict):
        marks = ("cache_control", "prompt_cache_breakpoint")
        return {key: unmarked(held) for key, held in value.items() if key not in marks}
    return [unmarked(held) for held in value] if isinstance(value, list) else value


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider(module_platform: Platform) -> AsyncIterator[Simulator]:
    """The models of services for all tests, with the camera as their server."""
    server: Server[Any] = Server("camera", on_list_tools=offered, on_call_tool=taken)
    async with serving(server) as url:
        camera = {"name": "camera", "url": url, "effects": {"shot": "read"}}
        simulator = await module_platform.simulate(rounds(*TALK), models=FACTS)
        await module_platform.start(
            "router",
            "tool_registry",
            "executor",
            router=RouterSettings(**endpoints(simulator)),
            tool_registry=with_tools(camera, answer_within_s=4, available_within_s=10),
            executor=ExecutorSettings(**endpoints(simulator)),
        )
        yield simulator
        assert await differences(module_platform.bus) == []


@pytest_asyncio.fixture(loop_scope="module")
async def jobs(module_platform: Platform, provider: Simulator) -> CameraJobs:
    provider.play(rounds(*TALK))
    platform = await module_platform.new_tenant()
    await put_own(platform)
    await platform.put_agent("looker", instructions="Look.", tools=("camera__shot",))
    return CameraJobs(platform, provider)


@pytest.mark.parametrize("model", cases(FOUR))
async def test_tool_images_reach_every_wire_unchanged_and_are_paid(jobs: CameraJobs, model: str):
    ended = await jobs.run(model)

    assert (ended.status, ended.answer, ended.error) == ("completed", "A wall.", None)
    assert jobs.sent() == [[], [SMALL], [SMALL, LARGE]]
    assert ended.cost_usd == jobs.billed() > 0
    events = await jobs.platform.events("j1")
    assert tuple(event.content for event in events if isinstance(event, e.ToolCompleted)) == NOTES
    asked = [event for event in events if isinstance(event, e.ModelRequested)]
    answered = [event for event in events if isinstance(event, e.ModelCompleted)]
    for before, after in zip(asked, answered, strict=True):
        assert before.worst_usd is not None and after.cost_usd is not None and before.worst_usd >= after.cost_usd
    assert [event.cache_break for event in asked] == [None] * 3
    assert LARGE in [base64.b64decode(i.content_base64) for event in events for i in getattr(event, "images", ())]
    assert max([len(record) for record in await jobs.records()]) <= MESSAGE_MAX


@pytest.mark.parametrize("model", cases(FOUR))
async def test_a_prompt_with_an_image_is_a_prefix_of_later_ones(jobs: CameraJobs, model: str):
    await jobs.run(model)

    _, second, third = (unmarked(each.body) for each in jobs.simulator.requests)
    part = "messages" if "messages" in second else "input"
    assert orjson.dumps(third[part][: len(second[part])]) == orjson.dumps(second[part])


async def test_a_model_without_vision_gets_image_notes(jobs: CameraJobs):
    ended = await jobs.run(BLIND)

    assert (ended.status, jobs.sent()) == ("completed", [[], [], []])
    results = [
        message["content"] for message in jobs.simulator.requests[-1].body["messages"] if message["role"] == "tool"
    ]
    assert tuple(results) == NOTES
    assert ended.cost_usd == jobs.billed()


async def test_claudes_third_call_reads_the_cache_including_the_image(jobs: CameraJobs):
    await jobs.run(CLAUDE)

    second, third = (charge.usage for charge in jobs.simulator.bill.charges[1:])
    written = second.cache_read + second.cache_write_5m + second.cache_write_1h
    assert third.cache_read == written > 0
