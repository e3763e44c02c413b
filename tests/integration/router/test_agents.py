"""An agent's versions, whoever saves them."""

import asyncio

import pytest

from wayline.contracts.agents import AgentConfig
from wayline.contracts.errors import NotFound

from .conftest import TENANT, Offices


async def test_configurations_saved_at_once_become_consecutive_versions(offices: Offices):
    routers = [await offices() for _ in range(4)]
    configs = [AgentConfig(description=f"from {n}", style="balanced") for n in range(16)]

    saved = await asyncio.gather(
        *(routers[n % 4].agents.put(TENANT, "new", config) for n, config in enumerate(configs))
    )

    assert sorted(agent.version for agent in saved) == list(range(1, 17))
    assert [agent.config for agent in saved] == configs


async def test_a_version_tells_who_saved_it_and_what_changed(offices: Offices):
    agents = (await offices()).agents
    for by, config in (
        ("ann", AgentConfig(description="one")),
        ("bob", AgentConfig(description="two", max_steps=3)),
        ("carl", AgentConfig(description="two", max_steps=3)),
    ):
        await agents.put(TENANT, "reviewer", config, by=by)
    await agents.delete(TENANT, "reviewer")
    again = await agents.restore(TENANT, "reviewer", None, by="dora")

    history = (await agents.history(TENANT, "reviewer", before=None, limit=10)).versions
    older = (await agents.history(TENANT, "reviewer", before=3, limit=1)).versions
    second = await agents.version(TENANT, "reviewer", 2)

    # What was not changed is no version; a restored one is, with nothing changed.
    assert [(one.version, one.saved_by, one.changed) for one in history] == [
        (3, "dora", ()),
        (2, "bob", ("description", "max_steps")),
        (1, "ann", ()),
    ]
    assert [one.retired_at is None for one in history] == [True, False, False]
    assert (again.version, [one.version for one in older]) == (3, [2])
    assert (second.saved_by, second.changed, second.config.max_steps) == ("bob", ("description", "max_steps"), 3)
    with pytest.raises(NotFound):
        await agents.history(TENANT, "nobody", before=None, limit=10)
    with pytest.raises(NotFound):
        await agents.version(TENANT, "reviewer", 4)


def answering(*fields: str) -> AgentConfig:
    """Return an agent whose answer has these fields, in this order."""
    schema = {"type": "object", "properties": {name: {"type": "string", "title": "é"} for name in fields}}
    return AgentConfig(output_schema=schema)


def fields_of(config: AgentConfig) -> list[str]:
    assert config.output_schema is not None
    return list(config.output_schema["properties"])


async def test_the_order_of_an_answers_fields_makes_a_version(offices: Offices):
    agents = (await offices()).agents
    saved = [await agents.put(TENANT, "thinker", answering("reasoning", "answer")) for _ in range(2)]
    turned = await agents.put(TENANT, "thinker", answering("answer", "reasoning"))
    newest = await agents.get(TENANT, "thinker")
    first = await agents.version(TENANT, "thinker", 1)
    (history, _) = (await agents.history(TENANT, "thinker", before=None, limit=10)).versions

    assert [one.version for one in (*saved, turned)] == [1, 1, 2]
    assert fields_of(first.config) == fields_of(saved[0].config) == ["reasoning", "answer"]
    assert fields_of(newest.config) == ["answer", "reasoning"]
    assert history.changed == ("output_schema",)


async def test_an_agent_of_an_older_version_stays_as_it_is(offices: Offices):
    office = await offices()
    config = AgentConfig(description="as before", max_steps=3)
    kept = await office.agents.put(TENANT, "elder", config)
    async with office.store.system() as conn:
        await conn.execute("UPDATE agents SET written = NULL WHERE name = 'elder'")

    assert await office.agents.get(TENANT, "elder") == kept
    assert (await office.agents.put(TENANT, "elder", config)).version == 1
