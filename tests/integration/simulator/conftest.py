"""Both SDKs, over their aiohttp transports, without retries of their own."""

from __future__ import annotations

import pytest
from anthropic import AsyncAnthropic
from anthropic import DefaultAioHttpClient as AnthropicHttp
from openai import AsyncOpenAI
from openai import DefaultAioHttpClient as OpenAIHttp

from wayline.simulator import ManualClock, Simulator


class Providers:
    """A simulator and the SDK clients that talk to it; the script can be changed between requests."""

    def __init__(self, simulator: Simulator, clock: ManualClock) -> None:
        self.simulator = simulator
        self.clock = clock
        self.anthropic = AsyncAnthropic(
            base_url=simulator.url,
            api_key="simulated",
            max_retries=0,
            http_client=AnthropicHttp(),
            open_telemetry={"traces": {"enabled": False}, "propagation": False},
        )
        self.openai = AsyncOpenAI(
            base_url=simulator.openai_url, api_key="simulated", max_retries=0, http_client=OpenAIHttp()
        )

    @property
    def charge(self):
        """The last one."""
        return self.simulator.bill.charges[-1]

    async def close(self) -> None:
        await self.anthropic.close()
        await self.openai.close()


@pytest.fixture
async def providers():
    clock = ManualClock()
    async with Simulator(clock=clock) as simulator:
        made = Providers(simulator, clock)
        yield made
        await made.close()
