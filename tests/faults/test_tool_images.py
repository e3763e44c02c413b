"""`kill -9` around a tool that returns images: whoever goes on shows the model the same images, taken once."""

from __future__ import annotations

import base64
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.chassis.claim_check.claims import MESSAGE_MAX
from wayline.contracts.models import ModelCard, PutModel
from wayline.testkit import until
from wayline.testkit.media import png

from .conftest import MakePlatform
from .kill_points import slow
from .platform import TENANT, FaultPlatform, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SMALL = png(640, 480)
LARGE = png(1_280, 720) + Random(1).randbytes(400_000)
"""More than one message of the bus may hold: the log keeps its name, an object store its bytes."""
SERVER = """
import base64, pathlib

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ImageContent, TextContent

here = pathlib.Path(__file__).parent
server = MCPServer("camera", log_level="WARNING")


async def shot(ctx: Context, of: str) -> CallToolResult:
    with (here / "shots").open("a") as shots:
        shots.write(ctx.request_context.meta["wayline/key"] + "\\n")
    image = base64.b64encode((here / of).read_bytes()).decode()
    shown = ImageContent(type="image", data=image, mime_type="image/png")
    return CallToolResult(content=[TextContent(type="text", text="Here it is."), shown])


server.tool(structured_output=False)(shot)
server.run("stdio")
"""


@pytest.fixture(scope="module")
def camera(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a tool that takes pictures, and that notes each in a file."""
    home = tmp_path_factory.mktemp("camera")
    (home / "camera.py").write_text(SERVER)
    (home / "small.png").write_bytes(SMALL)
    (home / "large.png").write_bytes(LARGE)
    (home / "shots").touch()
    return home


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform, camera: Path) -> FaultPlatform:
    assert len(SMALL) < MESSAGE_MAX < len(LARGE)
    platform = await make_platform()
    server = {"name": "camera", "command": sys.executable, "args": [str(camera / "camera.py")]}
    platform.fleet.set("tool_registry", WAYLINE_TOOL_REGISTRY_SERVERS=[{**server, "effects": {"shot": "once"}}])
    # The card of a model is pinned only where its provider is configured.
    platform.fleet.set("router", WAYLINE_CHAT_BASE_URL=platform.chat.url)
    await platform.fleet.ensure("router", "tool_registry")
    card = ModelCard(provider="chat", model="seer", tier="standard", images=True)
    await platform.bus.ask(PutModel(tenant=TENANT, card=card), ModelCard)
    return platform


async def submit(platform: FaultPlatform, job_id: str, last: dict[str, Any]) -> None:
    """A job that takes a small picture, then a large one, and then says something."""
    shots = [{"tools": [["camera__shot", {"of": of}]]} for of in ("small.png", "large.png")]
    await platform.submit_plan(job_id, *shots, last, model="chat/seer")


def seen_in(messages: list[dict[str, Any]]) -> list[bytes]:
    """The images of a conversation, as the provider got them."""
    parts = [part for message in messages if isinstance(message["content"], list) for part in message["content"]]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [base64.b64decode(url.rpartition(",")[2]) for url in urls]


async def check(platform: FaultPlatform, camera: Path, job_id: str) -> None:
    """The job has ended, each picture was taken once, and no call was shown others than its conversation has."""
    assert (await platform.job(job_id)).life.status == "completed"
    await platform.check(job_id)
    shots = [key for key in (camera / "shots").read_text().splitlines() if f"/{job_id}/" in key]
    assert shots == [f"{TENANT}/{job_id}/1/1", f"{TENANT}/{job_id}/2/1"]
    calls = [body["messages"] for attempt, body in platform.chat.calls if attempt.startswith(f"{TENANT}/{job_id}/")]
    steps = [sum(message["role"] == "assistant" for message in messages) for messages in calls]
    assert Counter(steps).keys() == {0, 1, 2}
    assert [seen_in(messages) for messages in calls] == [[[], [SMALL], [SMALL, LARGE]][step] for step in steps]
    for before, after in pairwise(calls):
        assert after[: len(before)] == before, "a later call saw another conversation than the one before"


@pytest.mark.parametrize(
    ("point", "nth"),
    [
        # The second result came, and nobody has written it down.
        (Failpoint.EXECUTOR_TOOL_AFTER, 2),
        # It is about to be written with the next intent, or has been.
        slow(Failpoint.EXECUTOR_INTENT_BEFORE, 4),
        slow(Failpoint.EXECUTOR_INTENT_AFTER, 4),
        # The model has seen both and answered, and nobody has written that down.
        slow(Failpoint.EXECUTOR_MODEL_AFTER, 3),
    ],
)
async def test_after_a_kill_there_the_next_executor_shows_the_same_images(
    platform: FaultPlatform, camera: Path, point: Failpoint, nth: int
):
    name = point.replace(".", "-")
    doomed = await platform.fleet.start("executor", point, nth=nth)
    await submit(platform, name, says("A wall."))
    await platform.until_dead(doomed, name)

    await platform.fleet.start("executor")
    await platform.until_ended(name)
    await platform.until_quiet()
    await platform.fleet.stop("executor")

    await check(platform, camera, name)


@pytest.mark.slow
async def test_a_model_call_cut_by_a_kill_repeats_every_image_byte(platform: FaultPlatform, camera: Path):
    doomed = await platform.fleet.start("executor")
    await submit(platform, "cut", says("A wall, and a door.", hold="cut"))
    await until(lambda: "cut" in platform.holds, within=60, why="the model has seen both and is answering")
    doomed.kill()

    await platform.fleet.start("executor")
    await platform.until_ended("cut")
    await platform.until_quiet()
    await platform.fleet.stop("executor")

    await check(platform, camera, "cut")
    first, second = [
        body["messages"] for attempt, body in platform.chat.calls if attempt.startswith(f"{TENANT}/cut/3/")
    ]
    assert first == second
    assert seen_in(second) == [SMALL, LARGE]
