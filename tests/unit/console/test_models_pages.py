"""The pages about models: cards as forms, what was used, and which model would take an input."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.client import ApiError
from wayline.console.pages.frame import Frame
from wayline.console.pages.models import model_list
from wayline.console.pages.models.card_form import PricesForm, fields_of, read_card
from wayline.console.pages.models.model_list import Preview, users_of
from wayline.console.pages.models.model_page import TEMPLATE, ModelPage, address_of, latency_of
from wayline.console.pages.models.rate_rows import RATES
from wayline.console.render.environment import Templates
from wayline.console.render.schema_form import ApiSchemas
from wayline.contracts.models import STEPS_MAX, ModelCard

from ...console_forms import Sent

NOW = datetime(2026, 5, 1, tzinfo=UTC)
PAYLOAD = '"><img src=x onerror=alert(1)></textarea>\u202e'
RATE = {"input": "0.5", "output": "2", "cache_read": "0.05"}
FULL: dict[str, Any] = {
    **{"provider": "chat", "model": "org/qwen3:8b", "tier": "reasoning", "context_window": 40_000, "images": True},
    **{"reasoning": "effort", "efforts": ["low", "high"], "tools": "json", "priced_as": "a/b", "host": "example.com"},
    "cache": {"kind": "automatic", "min_tokens": 0, "ttl_s": 300.0, "prompt_cache_key": True},
    "media": {"patch_px": 14, "patch_tokens": "1.5", "images_max": 0},
    "prices": {
        **{"rates": RATE, "source": "our own list, 2026-04-01"},
        "above": [{"tokens": 100_000, "rates": {"input": "1", "output": "4"}}],
        "when": [
            {"rates": {"input": "0", "output": "0"}, "daily_from": "22:00:00", "daily_until": "06:00:00"},
            {"rates": {"input": "3", "output": "9"}, "since": "2027-01-31", "above": [{"tokens": 5, "rates": RATE}]},
            {"rates": {"input": "4", "output": "9"}, "since": "2027-01-31", "above": [{"tokens": 6, "rates": RATE}]},
        ],
    },
}


def schemas() -> ApiSchemas:
    card = ModelCard.model_json_schema()
    return ApiSchemas({**card["$defs"], "ModelCard": card})


def frame_of(*scopes: str) -> Frame:
    me = {"tenant": "acme", "name": "ann", "scopes": ["read", *scopes], "open": False, "version": "1"}
    return Frame("Models", "/models", me, "token", "system", "/models", now=NOW)


def page_of(card: dict[str, Any], **more: Any) -> ModelPage:
    shown = ModelCard.model_construct(**card) if more.pop("raw", False) else ModelCard.model_validate(card)
    given = shown.model_dump(mode="json", warnings=False)
    fields = fields_of(schemas(), given, {})
    return ModelPage(**{"card": given, "tag": '"7"', "own": True, "usable": True, "fields": fields, **more})


def html_of(page: ModelPage, *scopes: str) -> str:
    return Templates().render(TEMPLATE, page=page, frame=frame_of(*scopes), rates=RATES).decode()


@pytest.mark.parametrize(
    "card", [{"provider": "chat", "model": "s", "tier": "flash"}, FULL], ids=["unknown prices", "full"]
)
def test_an_untouched_form_sends_the_card_that_it_shows(card: dict[str, Any]):
    page = page_of(card)
    sent = Sent(html_of(page, "admin")).fields
    found, problems = read_card(sent.get, page.fields, provider=sent["provider"], model=sent["model"])

    assert problems == {}
    assert ModelCard.model_validate(found, extra="forbid") == ModelCard.model_validate(card)


def typed_again(page: ModelPage, typed: dict[str, str], said: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Return the page of a form that was sent with these changes and refused, and what its fields hold."""
    get = (Sent(html_of(page, "admin")).fields | typed).get
    card, problems = read_card(get, page.fields, provider="a", model="b")
    problems |= said
    shown = {"fields": fields_of(schemas(), card, problems, get), "problems": problems}
    html = html_of(replace(page, card=card, typed_prices=PricesForm.typed(get, problems), **shown), "admin")
    return html, Sent(html).fields


def test_what_cannot_be_read_of_a_card_stays_in_its_form():
    typed = {"context_window": "many", "price.source": "a letter", "price.further.0.tokens": "lots"}
    html, fields = typed_again(page_of(FULL), typed, {})

    assert {name: fields[name] for name in typed} == typed
    assert fields["price.input"] == "0.5" and 'id="error-context_window">this is not a whole number' in html
    problem = "&#39;lots&#39; is not a whole number of tokens such as 200000"
    assert f'<p class="error" id="error-price.further.0">{problem}</p>' in html
    assert f'<p class="error">other rates, row 1: {problem}</p>' in html


ROW = {"input": "1", "output": "2"}


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([ROW], "row 1: say above how many tokens these rates hold, or at which times"),
        ([{"tokens": "9", "input": "1"}], "row 1: give the rates of input and of output"),
        (
            [{"since": "2027-01-31"} | ROW, {"tokens": "9", "since": "2027-02-01"} | ROW],
            "row 2: first give, in a row above, the rates of smaller requests at these times",
        ),
    ],
)
def test_a_row_of_rates_says_what_it_lacks(rows: list[dict[str, str]], problem: str):
    typed = {f"price.further.{number}.{name}": text for number, row in enumerate(rows) for name, text in row.items()}
    tokens = {f"price.further.{number}.tokens": row.get("tokens", "") for number, row in enumerate(rows)}
    get = ({"price.input": "1", "price.output": "2"} | typed | tokens).get
    _, problems = read_card(get, [], provider="a", model="b")

    assert problems == {"prices": f"other rates, {problem}"}


def test_what_the_api_says_of_rates_stands_beside_their_row():
    said = {"prices.when.1.above.0.rates.input": "too much", "prices.when.0.daily_from": "no time"}
    html, _ = typed_again(page_of(FULL), {}, said)

    assert re.findall(r'id="error-price.further.(\d)">([^<]*)', html) == [("1", "no time"), ("3", "too much")]


def test_a_card_keeps_as_many_rates_as_it_may_have():
    steps = [{"tokens": size, "rates": ROW} for size in range(1, STEPS_MAX + 1)]
    when = [{"rates": ROW, "since": f"2027-01-{day:02}", "above": steps} for day in range(1, STEPS_MAX + 1)]
    prices = {"rates": ROW, "source": "a letter", "above": steps, "when": when}
    fields = Sent(html_of(page_of(FULL | {"prices": prices}), "admin")).fields
    card, problems = read_card(fields.get, [], provider="a", model="b")

    assert (card["prices"], problems) == (prices, {})


def test_a_row_of_rates_that_is_emptied_is_left_out():
    fields = Sent(html_of(page_of(FULL), "admin")).fields
    emptied = {name: "" for name in fields if name.startswith(("price.further.0.", "price.further.3."))}
    card, _ = read_card((fields | emptied).get, [], provider="a", model="b")

    assert "above" not in card["prices"]
    assert ["above" in tariff for tariff in card["prices"]["when"]] == [False, False, True]


def test_a_model_shows_its_pause_and_how_its_calls_went():
    cost = {"calls": 40, "cost_usd": "1.25", "cache_read_share": 0.5}
    spans = [{"duration_ms": float(ms), "status": "error" if ms == 7 else "ok"} for ms in range(1, 101)]
    away = {"model": "chat/s", "why": "held", "retry_after_s": 90.0}
    page = page_of(FULL, left_alone=away, cost=cost, latency=latency_of(spans), users=["helper"])
    html = html_of(page, "admin")

    assert "its provider asked for a pause: called again in 1 min 30 s" in html
    assert "$1.25" in html and "50 %" in html and "50 ms" in html and "96 ms" in html
    assert '<a href="/agents/helper">' in html and "our own list, 2026-04-01" in html


def test_costs_that_a_key_may_not_know_are_no_zero():
    known, unknown = (html_of(page_of(FULL, knows_costs=knows)) for knows in (True, False))

    assert "$0" in known and "$0<" not in unknown and "this key is of one" in unknown


def test_open_calls_have_no_latency():
    assert latency_of([{"duration_ms": None, "status": "open"}]) is None


def test_agents_are_counted_once_for_each_model_that_they_name():
    routing = {"fast": "a/b", "primary": None, "escalation": "a/b", "reasoning": "flash", "fallbacks": ["c/d"]}
    agents = [{"name": "helper", "config": {"model": "a/b", "routing": routing}}]

    assert users_of(agents) == {"a/b": ["helper"], "flash": ["helper"], "c/d": ["helper"]}


def test_a_name_with_slashes_keeps_them_in_its_address():
    assert address_of("chat", "org/qwen3:8b?x") == "/models/chat/org/qwen3%3A8b%3Fx"


def test_a_key_that_may_only_read_sees_the_card_disabled():
    html = html_of(page_of(FULL))

    assert "that takes the scope admin" in html and html.count(" disabled") > 25


def test_strangers_words_change_nothing_of_a_card():
    said, hostile = ({**FULL, "model": word, "priced_as": word} for word in ("said", PAYLOAD))
    found = html_of(page_of(hostile, raw=True), "admin")

    assert Sent(found).tags == Sent(html_of(page_of(said), "admin")).tags
    assert "<img" not in found


class Recorded:
    """A client that answers with what was recorded."""

    def __init__(self, *, providers: int = 200) -> None:
        self.providers = providers

    async def whole(self, path: str, name: str) -> Any:
        if path == "/v1/agents":
            return {name: []}
        card = ModelCard.model_validate(FULL).model_dump(mode="json")
        other = ModelCard(provider="far", model="away", tier="flash").model_dump(mode="json")
        return {
            name: [card, other],
            "usable": ["chat/org/qwen3:8b"],
            "own": [],
            "image_models": [{"provider": "far", "model": "paint"}],
        }

    async def get(self, path: str, **_: Any) -> Any:
        if path == "/v1/costs":
            raise ApiError("costs are of all users", code="forbidden", status=403)
        if self.providers != 200:
            raise ApiError("no executor answers", code="unavailable", status=self.providers)
        return {"left_alone": [{"model": "chat/org/qwen3:8b", "why": "failing", "retry_after_s": 0.0}]}


async def catalogue(**more: Any) -> model_list.ModelCatalogue:
    return await model_list.read(Recorded(**more), now=NOW)  # pyright: ignore[reportArgumentType]


def list_html(page: model_list.ModelCatalogue, *scopes: str) -> str:
    return Templates().render(model_list.TEMPLATE, page=page, frame=frame_of(*scopes)).decode()


async def test_models_that_cannot_be_called_are_shown_when_asked_for():
    page = await catalogue()
    few, everything = list_html(page, "admin"), list_html(replace(page, usable_only=False), "admin")

    assert "far/paint" in few and "its calls fail: next call tries" in few and "far/away" not in few
    assert "far/away" in everything and "not configured" in everything
    assert "$0.00" not in few and 'href="/models/chat/org/qwen3%3A8b"' in few


async def test_models_are_shown_while_no_executor_answers():
    assert "org/qwen3:8b" in list_html(await catalogue(providers=503))


async def test_the_model_that_would_take_an_input_has_its_reason():
    route = {
        **{"provider": "chat", "model": "s", "tier": "flash", "slot": "fast", "task_type": None, "complexity": None},
        **{"reason": "It is cheap", "estimated_cost_usd": "0.01", "estimated_cost_range_usd": ["0.005", "0.02"]},
    }
    page = replace(await catalogue(), preview=Preview("helper", "Hello", {"route": route, "refusal": None}))
    html = list_html(page, "write")

    assert "chat/s</strong>" in html and "It is cheap." in html and "Hello</textarea>" in html


async def test_a_key_without_write_cannot_ask_the_router():
    assert "Your key lacks the scope write." in list_html(await catalogue())
