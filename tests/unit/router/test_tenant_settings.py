"""What a tenant's settings mean for its agents."""

from __future__ import annotations

from decimal import Decimal

from wayline.contracts.agents import AgentConfig
from wayline.contracts.tenant_settings import INHERITED, SETTINGS, SettingsChange, TenantSettings
from wayline.router.agents.bundled import bundled
from wayline.router.tenants.settings_in_force import (
    in_force,
    inherited_by,
    inherited_by_default,
    read_settings,
    resolved,
)

EIGHT = SettingsChange(max_steps=8, style="direct", memory=False)


def bounds(schema: dict, name: str) -> dict:
    """What a field takes, without its words and without null."""
    field = schema["properties"][name]
    [kind, *_] = field.get("anyOf", [field])
    return {key: value for key, value in kind.items() if key not in ("description", "default", "title")}


def test_every_setting_is_a_field_that_agents_have_too():
    settings, change = TenantSettings.model_json_schema(), SettingsChange.model_json_schema()
    agent = AgentConfig.model_json_schema()

    assert tuple(SettingsChange.model_fields) == (*INHERITED, "default_model")
    for name in INHERITED:
        assert bounds(settings, name) == bounds(change, name)
        if name != "tools":
            assert bounds(agent, name) == bounds(settings, name), name


def test_the_defaults_are_what_an_agent_has_without_settings():
    plain, settings = AgentConfig(), TenantSettings()

    # An agent names no style of its own, and what a job may spend by default is the router's to say.
    for name in set(INHERITED) - {"style", "max_cost_usd"}:
        assert getattr(plain, name) == getattr(settings, name), name
    assert resolved(plain, inherited_by(plain), SettingsChange()) == plain.model_copy(update={"style": "balanced"})


def test_an_agent_that_names_no_style_has_the_default_one():
    left, silent = AgentConfig(), AgentConfig(style=None)

    styles = [resolved(one, inherited_by(one), SettingsChange()).style for one in (left, silent)]

    assert styles == [TenantSettings().style, None]


def test_a_field_that_an_agent_sets_comes_before_the_settings():
    own = AgentConfig(max_steps=5, memory=True)

    found = resolved(own, inherited_by(own), EIGHT)

    assert (found.max_steps, found.style, found.memory, found.tools_off) == (5, "direct", True, ())


def test_a_switch_that_is_off_excludes_the_tools_of_its_category():
    found = resolved(AgentConfig(tools_off=("deploy*",)), INHERITED, EIGHT)

    assert found.tools_off[0] == "deploy*"
    assert {"save_memory", "crm__memory_find"} == {
        name
        for name in ("save_memory", "crm__memory_find", "web_search", "search_knowledge")
        if any(name.startswith(p.rstrip("*")) or p.lstrip("*").rstrip("*") in name for p in found.tools_off)
    }


def test_a_null_cost_is_left_to_the_settings():
    config = AgentConfig(max_cost_usd=None, style=None)

    found = resolved(config, inherited_by(config), SettingsChange(max_cost_usd=Decimal("0.5"), style="direct"))

    assert (found.max_cost_usd, found.style) == (Decimal("0.5"), None)


def test_agents_of_older_versions_leave_their_defaults_to_the_settings():
    config = AgentConfig(max_steps=12, style="tool_first")

    found = resolved(config, inherited_by_default(config), EIGHT)

    assert (found.max_steps, found.style, found.memory) == (12, "tool_first", False)


def test_the_bundled_agent_follows_every_setting():
    found = resolved(bundled()["assistant"], INHERITED, EIGHT)

    assert (found.max_steps, found.style) == (8, "direct")


def test_settings_in_force_name_those_that_nobody_has_changed():
    own = read_settings({"max_steps": 8, "from_a_newer_version": 1})

    found = in_force(own, job_budget_usd=Decimal("0.2"), updated_at=None)

    assert (found.max_steps, found.max_cost_usd, found.style) == (8, Decimal("0.2"), "balanced")
    assert found.defaults == tuple(name for name in SETTINGS if name != "max_steps")
