"""A router whose tables a newer one has written to."""

from wayline.contracts.agents import AgentConfig
from wayline.router.admission.conditions import AdmissionRequest

from .conftest import TENANT, Office


async def test_a_newer_routers_agent_is_read_without_unknown_fields(office: Office):
    await office.agents.put(TENANT, "newer", AgentConfig(description="d", style="balanced"))
    later = """UPDATE agents SET config = jsonb_set(config || '{"mood": "cheerful"}', '{routing,mood}', '"cheerful"')"""
    await office.store.execute(TENANT, later)

    admitted = await office.admissions.admit(TENANT, AdmissionRequest("j1", "newer"))

    assert admitted is not None and admitted.agent.config == AgentConfig(description="d", style="balanced")
    assert {agent.name for agent in (await office.agents.list(TENANT)).agents} == {"assistant", "critic", "newer"}
