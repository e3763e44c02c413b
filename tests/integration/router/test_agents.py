"""An agent's versions, whoever saves them."""

import asyncio

from wayline.contracts.agents import AgentConfig

from .conftest import TENANT, Offices


async def test_configurations_saved_at_once_become_consecutive_versions(offices: Offices):
    routers = [await offices() for _ in range(4)]
    configs = [AgentConfig(description=f"from {n}", style="balanced") for n in range(16)]

    saved = await asyncio.gather(
        *(routers[n % 4].agents.put(TENANT, "new", config) for n, config in enumerate(configs))
    )

    assert sorted(agent.version for agent in saved) == list(range(1, 17))
    assert [agent.config for agent in saved] == configs
