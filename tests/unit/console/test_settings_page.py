"""The pages about settings: what a form changes is what was changed in it, and keys see what they may."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.console.pages.frame import Frame
from wayline.console.pages.model_choices import model_groups
from wayline.console.pages.settings import audit_page, keys_page, services_page, tenants_page
from wayline.console.pages.settings.settings_page import STYLES, TEMPLATE, SettingsPage, changes, fields_of, wanted
from wayline.console.render.environment import Templates
from wayline.console.render.schema_form import ApiSchemas
from wayline.contracts.replicas import ReplicaState
from wayline.contracts.tenant_settings import SETTINGS, SettingsInForce
from wayline.gateway.handlers.shared import auditing

from ...console_forms import Sent

NOW = datetime(2026, 5, 1, tzinfo=UTC)
PAYLOAD = '"><img src=x onerror=alert(1)></textarea>\u202e'
TOOLS = [{"name": name, "description": "It pays " * 20} for name in ("pay", "bank__rate", "bank__pay")]


def frame_of(*scopes: str) -> Frame:
    me = {"tenant": "acme", "name": "ann", "scopes": ["read", *scopes], "open": False, "version": "1", "key_id": "k1"}
    return Frame("Settings", "/settings", me, "token", "system", "/settings", now=NOW)


def page_of(*, schema: dict[str, Any] | None = None, on: tuple[str, ...] = ("pay",), **settings: Any) -> SettingsPage:
    described = SettingsInForce.model_json_schema()
    described["properties"] |= schema or {}
    schemas = ApiSchemas({**described.get("$defs", {}), "SettingsInForce": described})
    given = {name: value for name, value in settings.items() if name in SettingsInForce.model_fields}
    defaults = tuple(name for name in SETTINGS if name not in settings)
    now = SettingsInForce(**given, defaults=defaults).model_dump(mode="json") | settings
    models = model_groups({"models": [{"provider": "chat", "model": "s", "tier": "flash"}], "usable": ["chat/s"]})
    return SettingsPage(now, '"7"', fields_of(schemas), TOOLS, frozenset(on), models)


def html_of(page: SettingsPage, *scopes: str) -> str:
    return Templates().render(TEMPLATE, page=page, frame=frame_of(*scopes), styles=STYLES).decode()


def changed_by(page: SettingsPage, back: tuple[str, ...] = (), tools: list[str] | None = None, **typed: str) -> Any:
    """Return what a patch says after fields of an untouched form were typed over."""
    html = html_of(page, "admin")
    sent = Sent(html).fields | typed
    ticked = re.findall(r'name="tool" value="([^"]+)" checked', html) if tools is None else tools
    said, problems = wanted(sent.get, ticked, page.fields)
    return problems or changes(page.settings, said, back)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_steps": 40, "max_cost_usd": "2.50", "style": "direct", "memory": "read", "show_reasoning": True},
        {"max_cost_usd": "0.005", "tools": ["pay", "away", "b*"], "default_model": "gone/model", "web_search": False},
    ],
    ids=["defaults", "beyond sliders", "lists"],
)
def test_an_untouched_form_changes_nothing(settings: dict[str, Any]):
    assert changed_by(page_of(**settings), tools=["pay"]) == {}


def test_only_what_was_typed_is_changed():
    page = page_of(max_steps=8)

    assert changed_by(page, max_steps="9") == {"max_steps": 9}
    assert changed_by(page, max_steps_more="40") == {"max_steps": 40}
    assert changed_by(page, cost_cents="25") == {"max_cost_usd": "0.25"}
    assert changed_by(page, max_cost_usd_more="3.5", style="tool_first") == {
        "max_cost_usd": "3.5",
        "style": "tool_first",
    }
    assert changed_by(page, default_model="chat/s") == {"default_model": "chat/s"}
    assert changed_by(page, max_steps_more="many") == {"max_steps": "this is not a whole number"}


def test_a_setting_goes_back_to_its_default():
    assert changed_by(page_of(max_steps=8), back=("max_steps", "style")) == {"max_steps": None}


def test_tools_are_all_or_those_that_are_on():
    page = page_of()

    assert changed_by(page, tools_all="some", tools=["pay", "bank__pay"]) == {"tools": ["pay", "bank__pay"]}
    some = changed_by(page, tools_all="some", tool_patterns="bank__*", tools=["pay", "bank__pay"])
    assert some == {"tools": ["bank__*", "pay"]}


def test_a_setting_that_the_api_gains_appears_by_itself():
    page = page_of(schema={"courage": {"type": "integer", "maximum": 9, "description": "How bold."}}, courage=3)

    assert "How bold. At most 9." in html_of(page, "admin")
    assert changed_by(page, courage="4") == {"courage": 4}


def test_styles_and_sliders_have_their_sentences():
    html = html_of(page_of(), "admin")

    assert "Gathers by tools before it answers; more thorough, slower." in html
    assert "Answers from what it knows; faster, may miss what is new." in html
    assert "Higher: more thorough, slower, dearer." in html
    assert re.search(r'name="max_steps" type="range" min="1" max="10" step="1" value="5"', html)
    assert re.search(r'name="cost_cents" type="range" min="1" max="100" step="1" value="10"', html)


def test_a_tool_shows_the_beginning_of_what_it_says():
    shown = re.search(r'bank__rate</span> <span class="quiet">([^<]*)<', html_of(page_of(), "admin"))

    assert shown is not None and len(shown[1]) == 50


def test_a_key_that_may_only_read_sees_the_settings_disabled():
    html = html_of(page_of())

    assert "that takes the scope admin" in html and "lacks the scope admin" in html
    assert html.count(" disabled") > 20


def test_strangers_words_change_nothing_of_the_settings():
    plain, hostile = page_of(default_model="said"), page_of(default_model=PAYLOAD)
    tool = {"name": PAYLOAD, "description": PAYLOAD}
    found = html_of(replace(hostile, tools=[tool]), "admin")

    assert Sent(found).tags == Sent(html_of(replace(plain, tools=[tool | {"name": "a"}]), "admin")).tags
    assert "<img" not in found


KEY: dict[str, Any] = {
    **{"id": "k1", "prefix": "wl_k1", "tenant": "acme", "name": PAYLOAD, "scopes": ["read"], "user_id": None},
    **{"limits": {"requests": {"per_minute": 60, "burst": None}, "jobs": None}, "created_at": "2026-04-01T00:00:00Z"},
    **{"expires_at": None, "last_used_at": None, "revoked_at": None},
}


def keys_html(page: keys_page.KeysPage, *scopes: str) -> str:
    shown = Templates().render(keys_page.TEMPLATE, page=page, frame=frame_of(*scopes), expiries=keys_page.EXPIRIES)
    return shown.decode()


def test_a_new_keys_secret_is_shown_once_with_a_warning():
    page = keys_page.KeysPage([KEY], scopes=("read", "admin", "operator"), created={**KEY, "key": "wl_k1_secret"})
    html = keys_html(page, "admin")

    assert html.count("wl_k1_secret") == 1 and "nothing can show it again" in html
    assert 'value="operator" disabled title="A key cannot give more than it has' in html
    assert "<img" not in html and "60 requests a minute" in html and "yours" in html


def test_keys_are_shown_to_administrators():
    assert "lacks the scope admin" in keys_html(keys_page.KeysPage(None))
    assert "No keys" in keys_html(keys_page.KeysPage([], scopes=("read",)), "admin")


def test_before_a_first_key_it_is_said_what_it_closes():
    page = keys_page.KeysPage([KEY], scopes=("read", "admin"))
    frame = frame_of("admin")
    shown = {
        is_open: Templates()
        .render(keys_page.TEMPLATE, page=page, frame=replace(frame, me={**frame.me, "open": is_open}), expiries=())
        .decode()
        for is_open in (True, False)
    }

    assert "give it admin, or it cannot make the next one" in shown[True]
    assert "closes it for good" not in shown[False]


def test_beside_a_new_key_no_page_says_there_is_none():
    page = keys_page.KeysPage([], scopes=("read",), created={**KEY, "key": "wl_k1_secret"})

    assert "No keys" not in keys_html(page, "admin")


def test_a_key_is_asked_for_as_its_form_says():
    sent = {"name": "ci", "user_id": "ann", "days": "30", "requests": "60", "jobs": ""}
    body = keys_page.body_of(lambda name: sent.get(name, ""), ["read"], now=NOW)

    assert body == {
        **{"name": "ci", "scopes": ["read"], "user_id": "ann", "expires_at": "2026-05-31T00:00:00+00:00"},
        "limits": {"requests": {"per_minute": 60}},
    }


def test_quotas_keep_the_burst_of_a_rate_that_stays():
    saved = {"tenant": {"requests": {"per_minute": 60, "burst": 5}, "jobs": {"per_minute": 9, "burst": 2}}}
    sent = {"tenant.requests": "60", "tenant.jobs": "10"}
    found = tenants_page.limits_of(lambda name: sent.get(name, ""), saved)

    assert found == {"tenant": {"requests": {"per_minute": 60, "burst": 5}, "jobs": {"per_minute": 10, "burst": None}}}
    with pytest.raises(ValueError, match="is not a whole number"):
        tenants_page.limits_of(lambda _: "many", None)


def test_quotas_are_disabled_for_keys_of_one_tenant():
    rates = {"requests": {"per_minute": 60, "burst": 10}, "jobs": None}
    limits = {"limits": None, "tenant_rates": rates, "key_rates": rates, "user_rates": rates}
    tenant = {"tenant": "acme", "disabled_at": "2026-04-01T00:00:00Z", "disabled_reason": PAYLOAD}
    page = tenants_page.TenantsPage([tenant], "acme", limits, "", is_operator=False)
    html = Templates().render(
        tenants_page.TEMPLATE, page=page, frame=frame_of(), whose=tenants_page.WHOSE, meters=tenants_page.METERS
    )

    assert b"takes the scope operator" in html and b"Now: 60, 10 at once." in html
    assert html.count(b"lacks the scope operator") == 3 and b"<img" not in html


def test_changes_say_what_is_not_known_and_strangers_words_do_nothing():
    entry = {
        **{"id": 1, "at": "2026-04-30T00:00:00Z", "kind": "agent", "name": PAYLOAD, "operation": "put_agent"},
        **{"by": PAYLOAD, "user_id": PAYLOAD, "is_operator": True, "detail": PAYLOAD, "code": "invalid_request"},
    }
    entries = [{**entry, "outcome": outcome} for outcome in ("made", "refused", None)]
    page = audit_page.AuditPage(entries, {"kind": PAYLOAD, "name": "", "by": ""}, 7, "/settings/audit?cursor=1")
    html = Templates().render(
        audit_page.TEMPLATE, page=page, frame=frame_of("admin"), kinds=audit_page.KINDS, day_choices=audit_page.DAYS
    )

    text = html.decode()
    assert "not known" in text and "refused: invalid_request" in text and "Older changes" in text
    assert "<img" not in text and "\u202e" not in text.replace(f'value="{PAYLOAD}', "").split("<tbody>")[1]


def test_every_kind_of_change_is_offered():
    assert {*auditing.KINDS.values(), *auditing.EXACTLY.values()} <= set(audit_page.KINDS)


def replica_of(name: str, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"service": "executor", "version": "1", "needs": {"bus": "ok"}, "ready": True, "in_hand": 0}
    return ReplicaState(**{**given, "name": name, **more}).model_dump(mode="json")


def services_html(page: services_page.ServicesPage, *scopes: str) -> str:
    frame = frame_of(*scopes)
    return (
        Templates().render(services_page.TEMPLATE, page=page, frame=frame, wrong_with=services_page.wrong_with).decode()
    )


def test_services_say_which_are_ready_and_which_are_drained():
    ill = {"ready": False, "needs": {"bus": "ok", "postgres": PAYLOAD}}
    since = datetime(2026, 4, 30, 23, tzinfo=UTC)
    replicas = [
        replica_of("executor-a-1", in_hand=3),
        replica_of("executor-a-2", ready=False, drained_at=since, needs={"work": "drained", "bus": "away"}),
        replica_of(PAYLOAD, service="router", **ill),
    ]
    page = services_page.ServicesPage(replicas, ("tracing",))
    html = services_html(page, "operator")

    assert html.count('<span class="good-text">ready</span>') == html.count(">not ready<") == 1
    assert "may be ended" in html and "bus: away" in html and "work: " not in html
    assert "postgres: " in html and "No process of tracing answered." in html
    assert (html.count(">Drain…<"), html.count(">Take work again<")) == (2, 1)
    assert 'action="/settings/services/executor-a-2/undrain"' in html and "<img" not in html
    assert [page.is_last(name) for name in ("executor-a-1", "executor-a-2", PAYLOAD)] == [True, False, True]


def test_services_are_shown_to_operators():
    assert "lacks the scope operator" in services_html(services_page.ServicesPage(None))
