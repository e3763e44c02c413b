"""Tenants in the router's tables."""

from __future__ import annotations

from typing import Any, cast

import pytest

from wayline.contracts.agents import AgentConfig
from wayline.contracts.errors import Conflict, NotFound, Reject
from wayline.contracts.tenants import CreateTenant, DisableTenant, EnableTenant, GetTenant, ListTenants
from wayline.router.tenants.handlers import TenantHandlers
from wayline.router.tenants.tenant_table import TenantTable
from wayline.testkit.walks import cases

from .conftest import Office

BUNDLED = {"assistant": AgentConfig(description="as delivered")}


def tenants_of(office: Office, *, most: int = 100) -> TenantHandlers:
    return TenantHandlers(TenantTable(office.store), shares=cast("Any", None), bundled=BUNDLED, tenants_max=most)


async def test_a_created_tenant_has_the_bundled_agents_and_may_run_jobs(office: Office):
    created = await tenants_of(office).on_create(CreateTenant(tenant="acme"))

    await office.known_tenants.require_enabled("acme")
    assert created.disabled_at is None
    assert (await office.agents.get("acme", "assistant")).config.description == "as delivered"


async def test_a_tenant_is_created_once(office: Office):
    tenants = tenants_of(office)
    await tenants.on_create(CreateTenant(tenant="acme"))

    with pytest.raises(Conflict, match="exists already"):
        await tenants.on_create(CreateTenant(tenant="acme"))


@pytest.mark.parametrize("name", cases(["Acme", "a_b", "-a", "a" * 41, "", "a.b", "*"]))
async def test_a_name_that_no_subject_takes_is_refused(office: Office, name: str):
    with pytest.raises(Reject, match="cannot name a tenant"):
        await tenants_of(office).on_create(CreateTenant(tenant=name))


async def test_there_are_only_so_many_tenants(office: Office):
    with pytest.raises(Reject, match="WAYLINE_ROUTER_TENANTS_MAX"):
        await tenants_of(office, most=1).on_create(CreateTenant(tenant="acme"))


async def test_a_disabled_tenant_runs_no_jobs_until_it_is_enabled(office: Office):
    tenants = tenants_of(office)
    await tenants.on_create(CreateTenant(tenant="acme"))

    disabled = await tenants.on_disable(DisableTenant(tenant="acme", reason="unpaid"))
    with pytest.raises(Reject) as refused:
        await office.known_tenants.require_enabled("acme")
    enabled = await tenants.on_enable(EnableTenant(tenant="acme"))

    assert (refused.value.code, disabled.disabled_reason) == ("tenant_disabled", "unpaid")
    assert (enabled.disabled_at, enabled.disabled_reason) == (None, "")
    await office.known_tenants.require_enabled("acme")


async def test_an_unknown_tenant_is_not_found(office: Office):
    for name in ("nobody", "No Slug"):
        with pytest.raises(NotFound):
            await tenants_of(office).on_get(GetTenant(tenant=name))
        with pytest.raises(Reject, match="wayline tenants create"):
            await office.known_tenants.require_enabled(name)


async def test_tenants_are_listed_in_pages(office: Office):
    tenants = tenants_of(office)
    for name in ("acme", "globex"):
        await tenants.on_create(CreateTenant(tenant=name))

    first = await tenants.on_list(ListTenants(tenant="default", limit=2))
    rest = await tenants.on_list(ListTenants(tenant="default", limit=2, after=first.next_after or ""))

    assert [tenant.tenant for tenant in (*first.tenants, *rest.tenants)] == ["acme", "default", "globex"]
    assert rest.next_after is None


async def test_a_removed_bundled_agent_comes_back_as_it_was_delivered(office: Office):
    await office.agents.put("default", "assistant", AgentConfig(description="mine"))
    await office.agents.delete("default", "assistant")

    restored = await office.agents.restore("default", "assistant", BUNDLED["assistant"])

    delivered = BUNDLED["assistant"].model_copy(update={"style": "balanced"})
    assert (restored.config, restored.version) == (delivered, 3)
    assert await office.agents.get("default", "assistant") == restored


async def test_a_deleted_own_agent_is_restored_as_last_saved(office: Office):
    await office.agents.put("default", "mine", AgentConfig(description="first"))
    await office.agents.put("default", "mine", AgentConfig(description="last"))
    await office.agents.delete("default", "mine")

    restored = await office.agents.restore("default", "mine", None)

    assert restored.config.description == "last"
    with pytest.raises(NotFound):
        await office.agents.restore("default", "never", None)
