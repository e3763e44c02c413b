"""Which providers an executor can call, from the variables it is given."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from wayline.contracts.models import Provider, ProviderList
from wayline.executor.adapters.model_providers import without
from wayline.executor.app import ADAPTERS, configured, providers
from wayline.executor.settings import Settings
from wayline.llm.endpoints import EndpointSettings

VARIABLES = [str(field.validation_alias) for field in EndpointSettings.model_fields.values()]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_without_any_variable_there_is_the_offline_model_alone():
    assert list(providers(Settings())) == ["offline"]


@pytest.mark.parametrize(
    ("name", "variable", "value"),
    [
        ("anthropic", "ANTHROPIC_API_KEY", "sk-1"),
        ("anthropic", "ANTHROPIC_BASE_URL", "http://127.0.0.1:9"),
        ("openai", "OPENAI_API_KEY", "sk-1"),
        ("openai", "OPENAI_BASE_URL", "http://127.0.0.1:9"),
        ("chat", "WAYLINE_CHAT_BASE_URL", "http://127.0.0.1:9"),
    ],
)
async def test_a_key_or_an_address_adds_its_provider(
    monkeypatch: pytest.MonkeyPatch, name: str, variable: str, value: str
):
    if name != "chat" and find_spec(f"wayline.llm.{name}") is None:
        pytest.skip(f"no adapter for {name}")
    monkeypatch.setenv(variable, value)

    found = providers(Settings())

    assert list(found) == ["offline", name]
    for model in found.values():
        await model.close()


def test_every_provider_that_can_be_configured_has_an_adapter():
    everything = EndpointSettings.model_validate(dict.fromkeys(VARIABLES, "http://127.0.0.1"))

    assert everything.endpoints().keys() == ADAPTERS.keys()


@pytest.mark.parametrize(
    ("message", "redacted"),
    [
        ("bad key sk-0123456789 here", "bad key (a key) here"),
        ("bad key sk-01234567", "bad key (a key)"),
        ("bad key sk-0123", "bad key sk-0123"),
        ("none", "none"),
    ],
)
def test_an_error_contains_no_key_nor_its_beginning(message, redacted):
    assert without(["none", "sk-0123456789"], message) == redacted


def test_an_executor_lists_its_providers_and_hosts_without_keys():
    settings = Settings(
        anthropic_api_key="sk-secret-of-ours",
        openai_base_url="http://me:sk-other-secret@gpt.internal:9/v1?key=sk-third",
    )

    provider_list = configured(settings, executor="host-1")

    assert provider_list == ProviderList(
        executor="host-1",
        providers=(
            Provider(name="anthropic", host="api.anthropic.com", keyed=True),
            Provider(name="openai", host="gpt.internal"),
            Provider(name="offline"),
        ),
    )
    assert "sk-" not in provider_list.model_dump_json()
