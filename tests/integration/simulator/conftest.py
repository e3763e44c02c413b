"""Both SDKs, over their aiohttp transports, without retries of their own."""

from __future__ import annotations

import pytest

from wayline.simulator import ManualClock, Simulator

from .sdks import anthropic, openai


class Providers:
    """A simulator and the SDK clients that talk to it; the script can be changed between requests."""

    def __init__(self, simulator: Simulator, clock: ManualClock) -> None:
        self.simulator = simulator
        self.clock = clock
        self.anthropic = anthropic.AsyncAnthropic(
            base_url=simulator.url,
            api_key="simulated",
            max_retries=0,
            http_client=anthropic.DefaultAioHttpClient(),
            open_telemetry={"traces": {"enabled": False}, "propagation": False},
        )
        self.openai = openai.AsyncOpenAI(
            base_url=simulator.openai_url, api_key="simulated", max_retries=0, http_client=openai.DefaultAioHttpClient()
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
