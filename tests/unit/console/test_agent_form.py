"""The form of an agent, made of the API's schema: what it shows is what it sends back."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.console.pages.agents.agent_form import FormSchema, read_tools
from wayline.console.pages.agents.agent_page import TEMPLATE, AgentPage, Checked, Surroundings, page_of
from wayline.console.pages.agents.differences import differences
from wayline.console.pages.agents.tool_lists import ToolLists
from wayline.console.pages.frame import Frame
from wayline.console.pages.model_choices import model_groups
from wayline.console.render.environment import Templates
from wayline.console.render.schema_form import ApiSchemas
from wayline.contracts.agents import AgentConfig
from wayline.contracts.tenant_settings import SettingsInForce

from ...console_forms import Sent

NOW = datetime(2026, 5, 1, tzinfo=UTC)
PAYLOAD = '"></textarea></select><img src=x onerror=alert(1)><script>alert(2)</script>\u202e'
SETTINGS = SettingsInForce().model_dump(mode="json")
CARD = {"provider": "chat", "model": "scripted", "tier": "standard"}
TOOL = {"name": "pay", "description": "Pay.", "effect": "once", "server": "bank"}


def schemas(**more: Any) -> ApiSchemas:
    """Return the schemas as the API describes them; `more`: fields that a newer one has."""
    agent, settings = AgentConfig.model_json_schema(), SettingsInForce.model_json_schema()
    agent["properties"] |= more
    return ApiSchemas(
        {**agent["$defs"], **settings.get("$defs", {}), "AgentConfig": agent, "SettingsInForce": settings}
    )


def page(config: dict[str, Any], checked: Checked | None = None, **more: Any) -> AgentPage:
    models = model_groups({"models": [CARD], "usable": ["chat/scripted"]})
    around = Surroundings(FormSchema.of(schemas(**more), SETTINGS), [TOOL], models, None)
    return page_of("helper", config, around=around, checked=checked or Checked({}), version=3, tag='"7"')


def html_of(shown: AgentPage, *scopes: str) -> str:
    me = {"tenant": "acme", "name": "ann", "scopes": ["read", *scopes], "open": False, "version": "1"}
    frame = Frame("helper", "/agents", me, "token", "system", "/agents/helper", now=NOW)
    return Templates().render(TEMPLATE, page=shown, frame=frame).decode()


def sent_back(shown: AgentPage) -> dict[str, Any]:
    """Return the configuration that the untouched form of a page says."""
    sent = Sent(html_of(shown, "admin")).fields
    config, problems = shown.around.schema.read(sent.get, ())
    assert problems == {}
    return config | read_tools(sent.get, (), inherited=SETTINGS["tools"]).fields()


FULL: dict[str, Any] = {
    **{"description": "Answers.", "instructions": "Be brief.\n\nThen stop.", "style": "direct", "language": "German"},
    **{"model": "chat/scripted", "task_type": "triage", "classify": True, "temperature": 0.25, "effort": "high"},
    "routing": {
        **{
            "mode": "locked",
            "fast": "flash",
            "primary": "chat/scripted",
            "escalation": "gone/model",
            "reasoning": None,
        },
        **{
            "reasoning": None,
            "fallbacks": ["chat/scripted"],
            "on_refusal": "fallback",
            "confidence_min": 0.4,
            "budget_aware": False,
        },
    },
    **{"output_schema": {"type": "object"}, "on_invalid": "empty", "tools": ["pay", "bank__*"], "memory": "read"},
    **{"tools_loading": {"always": ["pay"], "deferred": ["bank__*"]}, "tools_off": ["bank__close"], "images": False},
    **{"web_search": True, "code": True, "agents": ["critic"], "ask": "writes", "ask_tools": {"pay": "always"}},
    **{"max_steps": 9, "max_seconds": 30.5, "max_cost_usd": "0.25", "adapt_steps": False, "rerank": True},
    "pinned": [{"type": "text", "text": "Terms."}],
}


@pytest.mark.parametrize(
    "config", [{}, FULL, {"style": None, "instructions": "\nA line."}], ids=["empty", "full", "null"]
)
def test_an_untouched_form_sends_the_configuration_that_it_shows(config: dict[str, Any]):
    expected = AgentConfig.model_validate(config)
    found = AgentConfig.model_validate(sent_back(page(config)))

    assert found == expected
    inherited = set(SETTINGS) & set(AgentConfig.model_fields)
    assert found.model_fields_set & inherited == expected.model_fields_set & inherited


def test_who_approves_which_tool_is_written_in_lines():
    shown = page({"ask_tools": {"pay": "always", "bank__*": "never"}})
    html = html_of(shown, "admin")
    typed = {"ask_tools": " pay   always\r\n\r\nbank__note writes"}
    config, problems = shown.around.schema.read(typed.get, ())

    assert Sent(html).fields["ask_tools"] == "pay always\nbank__* never"
    assert "One a line: a name, a space, and always or writes or never." in html
    assert (config["ask_tools"], problems) == ({"pay": "always", "bank__note": "writes"}, {})


@pytest.mark.parametrize("line", ["pay", "pay sometimes", "always", "pay: Always"])
def test_a_line_that_says_no_approval_is_named(line: str):
    _, problems = page({}).around.schema.read({"ask_tools": f"bank always\n{line}"}.get, ())

    assert problems == {"ask_tools": f"{line!r} is not a name, a space and always or writes or never"}


def test_a_field_that_the_api_gains_appears_by_itself():
    shown = page({"courage": 3}, courage={"type": "integer", "minimum": 1, "maximum": 9, "description": "How bold."})
    html = html_of(shown, "admin")

    assert sent_back(shown)["courage"] == 3
    assert "How bold. 1 to 9." in html and "Courage" in html


def test_the_help_of_a_style_says_nothing_of_json():
    assert '<p class="help" id="help-style">When it uses tools; said at the head of the system prompt.</p>' in html_of(
        page({})
    )


def test_a_value_goes_back_to_the_tenants_settings():
    shown = page({"max_steps": 9, "style": "direct"})
    sent = Sent(html_of(shown, "admin")).fields

    config, _ = shown.around.schema.read(sent.get, ["max_steps"])
    assert "max_steps" not in config and config["style"] == "direct"
    assert "Go back to 5 of the tenant&#39;s settings" in html_of(shown, "admin")


def test_what_cannot_be_read_is_said_at_its_field():
    shown = page({})
    sent = Sent(html_of(shown, "admin")).fields | {"max_steps": "many", "temperature": "warm"}
    config, problems = shown.around.schema.read(sent.get, ())
    again = shown.around.schema.sections(config, problems, sent.get)

    assert problems == {"max_steps": "this is not a whole number", "temperature": "this is not a number"}
    values = {one.name: (one.value, one.error) for section in again for one in section.fields if one.error}
    assert values == {
        "max_steps": ("many", "this is not a whole number"),
        "temperature": ("warm", "this is not a number"),
    }


def test_what_the_api_refuses_stands_at_its_field():
    refused = "body.temperature: Input should be less than or equal to 2; body.max_steps: Input should be greater"
    html = html_of(page({}, Checked(None, refused)), "admin")

    assert '<p class="error" id="error-temperature">Input should be less than or equal to 2</p>' in html
    assert 'id="error-max_steps">Input should be greater</p>' in html


def test_the_slots_have_the_models_and_reasoning_its_sentence():
    html = html_of(page({}), "admin")

    assert html.count('<option value="chat/scripted">') == 5
    assert "Optional: used for inputs that need deep analysis, proofs in several steps or hard debugging." in html


def test_a_key_that_may_only_read_sees_the_form_disabled():
    html = html_of(page(FULL))

    assert "that takes the scope admin" in html
    assert '<button class="main" name="save" value="1" disabled title="Your key lacks the scope admin.">' in html
    assert '<textarea id="f-instructions" name="instructions" rows="14"' in html and html.count(" disabled") > 40


def test_strangers_words_change_nothing_of_the_form():
    said = "said\u202e"
    words: dict[str, Any] = {"description": said, "instructions": said, "model": said, "agents": [said]}
    hostile = {**words, "description": PAYLOAD, "instructions": PAYLOAD, "model": PAYLOAD, "agents": [PAYLOAD]}
    plain, found = html_of(page(words), "admin"), html_of(page(hostile), "admin")

    assert Sent(found).tags == Sent(plain).tags
    assert "<img" not in found and "Holds U+202E" in found
    # In a field what is typed stays what it is.
    assert "\u202e" not in re.sub(r"<textarea.*?</textarea>|value=\"[^\"]*\"", "", found, flags=re.DOTALL)


def test_what_was_saved_meanwhile_stands_beside_the_form():
    theirs = differences({"instructions": "Be brief.\nAlways."}, {"instructions": "Be long.\nAlways."})
    html = html_of(replace(page({}), theirs=theirs, problem="Version 4 was saved"), "admin")

    assert re.findall(r'class="agents-(removed|added)">. ([^\n]*)', html) == [
        ("removed", "Be brief."),
        ("added", "Be long."),
    ]


CHECKED = {
    **{"problems": [], "warnings": ["its tool 'x' does not exist"], "instructions_tokens": 1200, "tools": 2},
    **{"tools_tokens": 300, "tools_tokens_seen": 250, "tools_loaded": ["pay"], "tools_deferred": ["bank__a"]},
    **{"tokens_by_tool": {"pay": 140}, "slots": {"fast": "chat/scripted"}},
    "route": {"estimated_cost_usd": "0.01", "estimated_cost_range_usd": ["0.005", "0.02"], "reason": "It is cheap."},
}


def test_what_the_agent_would_be_has_tokens_and_costs():
    html = html_of(page({}, Checked(CHECKED)), "admin")

    assert "1,200 tokens" in html and "2, 1 always" in html and "It is cheap." in html
    assert "its tool &#39;x&#39; does not exist" in html
    assert '<td class="number">140</td>' in html


def test_lists_of_tools_are_lists_only_where_the_form_says_so():
    sent = {"tools": "a\nb", "tools_always": "a", "tools_off": ""}

    assert read_tools(sent.get, (), inherited=["*"]) == ToolLists(tools=("a", "b"))
    assert read_tools({**sent, "tools_loading": "lists"}.get, (), inherited=["*"]).always == ("a",)
