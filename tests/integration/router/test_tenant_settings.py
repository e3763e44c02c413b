"""A tenant's settings in the router's tables, and what they mean for the job that is admitted next."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts.agents import AgentConfig
from wayline.contracts.errors import NotFound, Reject
from wayline.contracts.models import ModelCard
from wayline.contracts.tenant_settings import ChangeSettings, GetSettings, SettingsChange, SettingsInForce
from wayline.router.admission.conditions import AdmissionRequest
from wayline.router.agents.agent_table import AgentTable
from wayline.router.models.tenant_models import Catalogue
from wayline.router.tenants.handlers import SettingsHandlers
from wayline.router.tenants.settings_table import SettingsTable
from wayline.router.tenants.tenant_table import TenantTable
from wayline.testkit.walks import cases

from .conftest import TENANT, Office, Offices


def settings_of(office: Office) -> SettingsHandlers:
    table = SettingsTable(office.store, job_budget_usd=Decimal("0.10"))
    models = Catalogue(office.store, reachable={"chat": "127.0.0.1"}, fresh_s=5, own_max=5)
    return SettingsHandlers(table, tenants=office.known_tenants, require_usable=models.require_usable)


async def change(office: Office, *, tenant: str = TENANT, **fields: Any) -> SettingsInForce:
    return await settings_of(office).on_change(ChangeSettings(tenant=tenant, change=SettingsChange(**fields)))


async def cap_of(office: Office, job_id: str) -> Decimal:
    return await office.store.fetchval(TENANT, "SELECT cap_usd FROM reservations WHERE job_id = $1", job_id)


async def test_changes_merge_and_a_null_goes_back_to_the_default(office: Office):
    before = await settings_of(office).on_get(GetSettings(tenant=TENANT))
    await change(office, max_steps=8, style="direct")
    await change(office, max_steps=None, images=False)

    after = await settings_of(office).on_get(GetSettings(tenant=TENANT))

    assert before == SettingsInForce(defaults=before.defaults)
    assert (after.max_steps, after.style, after.images) == (5, "direct", False)
    assert set(before.defaults) - set(after.defaults) == {"style", "images"}
    assert after.updated_at is not None


async def test_changes_at_once_on_different_routers_all_count(offices: Offices):
    routers = [await offices() for _ in range(3)]
    fields = [{"max_steps": 9}, {"style": "direct"}, {"memory": False}, {"max_seconds": 30}, {"adapt_steps": True}]

    await asyncio.gather(*(change(routers[n % 3], **one) for n, one in enumerate(fields)))

    found = await settings_of(routers[0]).on_get(GetSettings(tenant=TENANT))
    assert set(found.defaults).isdisjoint({"max_steps", "style", "memory", "max_seconds", "adapt_steps"})
    assert (found.max_steps, found.style, found.memory) == (9, "direct", False)
    assert (found.max_seconds, found.adapt_steps) == (30, True)


async def test_the_next_job_on_every_router_goes_by_a_change(offices: Offices):
    one, other = await offices(), await offices()
    await other.admit("before")

    await change(one, max_steps=9)

    assert [(await router.admit(f"j-{n}")).agent.config.max_steps for n, router in enumerate((one, other))] == [9, 9]


async def test_a_tenants_settings_are_no_other_tenants(office: Office):
    await TenantTable(office.store).create("acme", {"assistant": AgentConfig()})
    await change(office, tenant="acme", max_steps=9, max_cost_usd="5")

    admitted = await office.admit("j1")

    theirs = await office.admissions.admit("acme", AdmissionRequest("j1", "assistant"))
    assert theirs is not None
    assert (theirs.agent.config.max_steps, theirs.cap_usd) == (9, Decimal("5"))
    assert (admitted.agent.config.max_steps, admitted.cap_usd) == (5, Decimal("0.10"))
    assert (await settings_of(office).on_get(GetSettings(tenant=TENANT))).max_steps == 5


async def test_a_tenant_that_does_not_exist_has_no_settings(office: Office):
    with pytest.raises(NotFound, match="acme"):
        await change(office, tenant="acme", max_steps=9)


async def test_the_cost_of_a_job_comes_from_job_agent_settings_default(office: Office):
    await office.agents.put(TENANT, "dear", AgentConfig(max_cost_usd=Decimal("0.75")))
    await change(office, max_cost_usd="0.40")
    asked = {"j1": ("dear", "0.05"), "j2": ("dear", None), "j3": ("critic", None)}

    admitted = {job: await office.admit(job, agent=agent, cap=cap) for job, (agent, cap) in asked.items()}
    await change(office, max_cost_usd=None)
    admitted["j4"] = await office.admit("j4", agent="critic")

    expected = {"j1": "0.05", "j2": "0.75", "j3": "0.40", "j4": "0.10"}
    assert {job: found.cap_usd for job, found in admitted.items()} == {k: Decimal(v) for k, v in expected.items()}
    assert {job: await cap_of(office, job) for job in admitted} == {k: Decimal(v) for k, v in expected.items()}
    assert [found.cap_set for found in admitted.values()] == [True, True, True, False]


async def test_a_budget_for_each_job_bounds_what_settings_allow(office: Office):
    await office.put("each", "0.20", window="job")
    await change(office, max_cost_usd="0.40")

    first = await office.admit("j1")
    await change(office, max_cost_usd="0.15")
    second = await office.admit("j2")

    assert [first.cap_usd, await cap_of(office, "j1")] == [Decimal("0.20")] * 2
    assert [second.cap_usd, await cap_of(office, "j2")] == [Decimal("0.15")] * 2


async def test_an_agent_shows_what_it_leaves_to_the_settings(office: Office):
    await change(office, max_steps=9, style="direct")

    saved = await office.agents.put(TENANT, "own", AgentConfig(max_steps=3))

    assert (saved.config.max_steps, saved.config.style) == (3, "direct")
    assert "max_steps" not in saved.inherits
    assert {"style", "tools", "max_cost_usd"} <= set(saved.inherits)
    assert await office.agents.get(TENANT, "own") == saved


async def test_an_agent_that_sets_a_default_itself_is_another_version(office: Office):
    left = await office.agents.put(TENANT, "a", AgentConfig())
    same = await office.agents.put(TENANT, "a", AgentConfig(description=""))

    own = await office.agents.put(TENANT, "a", AgentConfig(max_steps=5))

    await change(office, max_steps=9)
    assert (left.version, same.version, own.version) == (1, 1, 2)
    assert (await office.agents.get(TENANT, "a")).config.max_steps == 5


async def test_an_agent_saved_as_read_follows_its_switches(office: Office):
    await change(office, web_search=False, memory="read")
    read = await office.agents.put(TENANT, "a", AgentConfig(tools_off=("bank__*",), images=False))
    kept = {name: getattr(read.config, name) for name in AgentConfig.model_fields if name not in read.inherits}
    again = await office.agents.put(TENANT, "a", AgentConfig(**{**kept, "description": "Edited."}))
    await change(office, web_search=None, memory=None)
    on = await office.agents.put(TENANT, "a", AgentConfig(**{**kept, "images": True}))

    assert "web_search*" in again.config.tools_off and "image_generate*" in again.config.tools_off
    assert "*memory_save*" in again.config.tools_off
    assert on.config.tools_off == ("bank__*",)


async def test_a_restored_agent_inherits_what_it_did(office: Office):
    await office.agents.put(TENANT, "a", AgentConfig(max_steps=5))
    await office.agents.delete(TENANT, "a")
    await change(office, max_steps=9, max_seconds=30)

    back = await office.agents.restore(TENANT, "a", None)
    delivered = await office.agents.restore(TENANT, "assistant", AgentConfig(max_steps=7))

    assert (back.config.max_steps, back.config.max_seconds) == (5, 30)
    assert delivered.config.max_steps == 9


async def test_agents_of_an_older_version_leave_their_defaults(office: Office):
    saved = await office.agents.put(TENANT, "old", AgentConfig(max_seconds=60))
    # As an older version saves them: without a word on what they inherit.
    await office.store.execute(TENANT, "UPDATE agents SET inherits = NULL")
    await change(office, max_steps=9, max_seconds=30, style="direct")

    old = await office.agents.get(TENANT, "old")
    again = await office.agents.put(TENANT, "old", AgentConfig(max_seconds=60))
    await office.agents.seed({"assistant": AgentConfig()})

    assert (old.config.max_steps, old.config.max_seconds, old.config.style) == (9, 60, "direct")
    assert saved.version == again.version == 1
    assert (await office.agents.get(TENANT, "assistant")).config.style == "direct"


async def test_an_upgraded_bundled_agent_follows_the_style_of_the_settings(office: Office):
    delivered = AgentConfig(style="balanced", description="as delivered")
    await office.agents.seed({"helper": delivered})
    await office.store.execute(TENANT, "UPDATE agents SET inherits = NULL, config = config - 'tools_off'")
    await change(office, style="direct")

    await AgentTable(office.store).seed({"helper": delivered})

    assert (await office.agents.get(TENANT, "helper")).config.style == "direct"


async def test_the_next_jobs_agent_knows_the_tenants_default_model(office: Office):
    models = Catalogue(office.store, reachable={"chat": "127.0.0.1"}, fresh_s=0, own_max=5)
    await models.put(TENANT, ModelCard(provider="chat", model="own", tier="standard"))
    before = await settings_of(office).on_get(GetSettings(tenant=TENANT))

    changed = await change(office, default_model="chat/own")
    admitted, draft = await office.admit("j1"), await office.agents.draft(TENANT, "new", AgentConfig())
    back = await change(office, default_model=None)

    assert (before.default_model, changed.default_model, back.default_model) == (None, "chat/own", None)
    assert "default_model" in before.defaults and "default_model" not in changed.defaults
    assert (admitted.agent.default_model, draft.default_model) == ("chat/own", "chat/own")
    assert (await office.admit("j2")).agent.default_model is None


@pytest.mark.parametrize("name", cases(["chat/other", "flash", "anthropic/claude-opus-4-6"]))
async def test_a_default_model_that_cannot_be_used_is_refused(office: Office, name: str):
    with pytest.raises(Reject, match="which this tenant cannot use") as refused:
        await change(office, default_model=name, max_steps=9)

    assert (refused.value.code, refused.value.status) == ("unusable_model", 422)
    assert (await settings_of(office).on_get(GetSettings(tenant=TENANT))).max_steps == 5
