"""Models on the command line: what is unknown is said to be, and the doctor knows what is configured."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from wayline.contracts.models import ModelCard, ModelList, Prices, Provider, ProviderList, Rates, RatesAbove
from wayline.llm.catalogue import bundled
from wayline.llm.endpoints import EndpointSettings
from wayline.standalone.doctor.models import examine_models, examine_running
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation
from wayline.standalone.terminal.model_views import model_details, models_table

Findings = Callable[[], Awaitable[list[tuple[str, str]]]]

RATES = Rates.model_validate({"input": "0.1", "output": "0.5", "cache_read": "0.01"})
STEPPED = ModelCard(
    provider="p",
    model="stepped",
    tier="flash",
    prices=Prices(rates=RATES, above=(RatesAbove(tokens=100, rates=RATES),)),
)
FREE = ModelCard(
    provider="p", model="free", tier="flash", prices=Prices.model_validate({"rates": {"input": 0, "output": 0}})
)
UNPRICED = ModelCard(provider="p", model="unpriced", tier="flash")


def drawn(what: Any) -> list[list[str]]:
    page = io.StringIO()
    Console(file=page, width=200, force_terminal=True, color_system=None).print(what)
    return [line.split() for line in page.getvalue().splitlines()]


def as_json(card: ModelCard) -> dict[str, Any]:
    return card.model_dump(mode="json")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch):
    for field in EndpointSettings.model_fields.values():
        monkeypatch.delenv(str(field.validation_alias), raising=False)
    monkeypatch.delenv("WAYLINE_URL", raising=False)


@pytest.fixture
def findings(tmp_path: Path):
    """What the doctor says of a place where nothing runs."""

    async def found() -> list[tuple[str, str]]:
        nothing = Installation(tmp_path / "data")
        return [(finding.state, finding.text) async for finding in examine_models(Settings(), nothing)]

    return found


AGENT = {
    "name": "critic",
    "config": {
        "model": None,
        "routing": {"fast": None, "primary": None, "escalation": None, "reasoning": None, "fallbacks": []},
    },
}


def agent(**routing: Any) -> dict[str, Any]:
    return {**AGENT, "config": {"model": None, "routing": {**AGENT["config"]["routing"], **routing}}}


def told(
    executors: ProviderList | list[ProviderList], models: ModelList, *agents: dict[str, Any]
) -> list[tuple[str, str]]:
    all_of_them = executors if isinstance(executors, list) else [executors]
    lists = [one.model_dump(mode="json") for one in all_of_them], models.model_dump(mode="json")
    return [(finding.state, finding.text) for finding in examine_running(*lists, list(agents))]


def test_an_unknown_price_shows_unknown_and_a_free_model_zero():
    listed = ModelList(models=(STEPPED, FREE, UNPRICED), usable=("p/free",), own=("p/free", "p/unpriced"))

    rows = {row[0]: row[3:] for row in drawn(models_table(listed.model_dump(mode="json")))[1:]}

    assert rows == {
        "p/stepped": ["0.1+", "0.01+", "0.5+", "off"],
        "p/free": ["0", "0", "0", "own"],
        "p/unpriced": ["unknown", "unknown", "unknown", "own,", "off"],
    }


@pytest.mark.parametrize("card", [STEPPED, UNPRICED, *bundled()], ids=lambda card: card.name)
def test_every_card_can_be_shown(card: ModelCard):
    rows = [" ".join(row) for row in drawn(model_details(as_json(card)))]

    assert f"model {card.model}" in rows
    assert ("price unknown" in rows) == (card.prices is None)
    assert len([row for row in rows if row.startswith("above ")]) == len(card.prices.above if card.prices else ())


async def test_without_a_provider_the_doctor_names_the_offline_model(findings: Findings):
    (found,) = await findings()

    assert found == ("note", "no provider is configured in this shell, so agents would run on the offline model")


HERE = ProviderList(providers=(Provider(name="p", host="p.example", keyed=True), Provider(name="offline")))


def test_the_doctor_reports_the_executors_providers_not_the_shells():
    assert told(HERE, ModelList(models=(FREE,), usable=("p/free",)), AGENT) == [("ok", "executors call p at p.example")]
    nobody = ProviderList(providers=(Provider(name="offline"),))
    assert told(nobody, ModelList(models=(FREE,))) == [
        ("note", "executors have no provider, so agents run on the offline model")
    ]


def test_the_doctor_names_agents_whose_models_cannot_be_called():
    models = ModelList(models=(FREE,), usable=("p/free",))
    wanting = agent(fast="flash", primary="openai/gpt-6-sol", escalation="premium", fallbacks=["p/free", "chat/own"])

    assert told(HERE, models, wanting)[1:] == [
        ("warning", "agent critic names openai/gpt-6-sol, but executors have no openai"),
        ("warning", "agent critic names the tier premium, which has no model here"),
        ("warning", "agent critic names chat/own, but executors have no chat"),
    ]


def test_the_doctor_sees_that_routers_and_executors_are_configured_differently():
    models = ModelList(
        models=(FREE, UNPRICED.model_copy(update={"provider": "openai"})), usable=("p/free", "openai/unpriced")
    )

    assert told(HERE, models)[1:] == [
        ("warning", "routers send jobs to openai, which executors cannot call"),
        ("note", "these models have no price: openai/unpriced"),
    ]


def test_the_doctor_sees_executors_that_are_configured_differently():
    """What only some have is no provider that an agent lacks: it is said once, and who has what."""
    models = ModelList(models=(FREE,), usable=("p/free",))
    other = HERE.model_copy(update={"executor": "b-2", "providers": (Provider(name="offline"),)})
    elsewhere = HERE.model_copy(update={"executor": "c-3", "providers": (Provider(name="p", host="q.example"),)})
    one = HERE.model_copy(update={"executor": "a-1"})
    wanting = agent(primary="p/free")

    assert told([one, other], models, wanting) == [
        ("warning", "executors are configured differently: a-1 calls p at p.example; b-2 calls no provider")
    ]
    assert told([one, elsewhere], models) == [
        (
            "warning",
            "executors are configured differently: a-1 calls p at p.example; c-3 calls p at q.example, without a key",
        )
    ]
    assert told([one, one.model_copy(update={"executor": "d-4"})], models) == [
        ("ok", "2 executors call p at p.example")
    ]


def test_of_many_executors_the_doctor_names_some_of_each_kind():
    models = ModelList(models=(FREE,), usable=("p/free",))
    alike = [HERE.model_copy(update={"executor": f"a-{n}"}) for n in range(5)]
    other = ProviderList(executor="b-2", providers=(Provider(name="offline"),))

    ((_, text),) = told([*alike, other], models)

    assert text == (
        "executors are configured differently: a-0, a-1, a-2 and 2 more call p at p.example; b-2 calls no provider"
    )


async def test_the_doctor_names_each_provider_and_unpriced_models(monkeypatch: pytest.MonkeyPatch, findings: Findings):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")

    assert await findings() == [
        ("ok", "anthropic at http://127.0.0.1:9, without a key"),
        ("ok", "openai at https://api.openai.com/v1"),
        ("note", "these models have no price: openai/gpt-6.2-sol, openai/gpt-6.2-astra"),
    ]


async def test_the_doctor_notes_an_endpoint_without_a_catalogue_model(
    monkeypatch: pytest.MonkeyPatch, findings: Findings
):
    monkeypatch.setenv("WAYLINE_CHAT_BASE_URL", "http://127.0.0.1:11434/v1")

    assert await findings() == [
        ("ok", "chat at http://127.0.0.1:11434/v1, without a key"),
        ("note", "the catalogue has no model of the configured providers"),
    ]
