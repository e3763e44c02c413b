"""A listing of tools is used again, but not as the first of a job that has servers to wait for."""

from __future__ import annotations

import asyncio
from typing import Any

from wayline.contracts.agents import AgentConfig
from wayline.contracts.tools import ServerAway, ToolDefinition, ToolList
from wayline.executor.adapters.tool_registry import ToolRegistry
from wayline.journal import Job

ECHO = ToolDefinition(name="slow__echo")
WITHOUT = ToolList(tools=(), away=(ServerAway(name="slow", why="it is being connected", known=False, tried=False),))


class Answers:
    """A bus that answers each listing with the next of some, and then with the last."""

    def __init__(self, *listings: ToolList) -> None:
        self._listings = [*listings]

    async def ask(self, *_: Any) -> ToolList:
        return self._listings.pop(0) if len(self._listings) > 1 else self._listings[0]


def agent_job(*, offered: tuple[ToolDefinition, ...] | None = None) -> Job:
    job = Job(job_id="j1", tenant="default")
    config = AgentConfig(tools=("slow__*",))
    return job._replace(routing=job.routing._replace(config=config), tools=job.tools._replace(offered=offered))


def registry(*listings: ToolList, wait_s: float = 60.0) -> ToolRegistry:
    bus: Any = Answers(*listings)
    return ToolRegistry(bus, fresh_s=60.0, wait_s=1.0, absent_wait_s=wait_s)


async def test_a_new_job_takes_no_listing_that_lacks_its_server():
    tools = registry(WITHOUT, ToolList(tools=(ECHO,)))
    # A job that is at work lists, and does not wait.
    assert await tools.offered(agent_job(offered=())) == ()
    assert tools.known(agent_job(offered=())) == ()

    assert tools.known(agent_job()) is None
    assert await asyncio.wait_for(tools.offered(agent_job()), 10) == (ECHO,)
    assert tools.known(agent_job()) == (ECHO,)


async def test_a_server_waited_for_in_vain_delays_no_other_job():
    tools = registry(WITHOUT, wait_s=0.0)

    assert await tools.offered(agent_job()) == ()

    assert tools.known(agent_job()) == ()
    assert tools.absent(agent_job()) == ("slow",)
