"""A wrong setting is one sentence with its variable, whichever service it is of."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from wayline.chassis.settings import BusSettings, EnvironmentSettings
from wayline.contracts.errors import WrongSetting
from wayline.testkit import until
from wayline.testkit.service_starts import start_service

SERVICES = ("gateway", "router", "executor", "retrieval", "tool_registry", "tracing")
CLASSES: tuple[type[EnvironmentSettings], ...] = (
    BusSettings,
    *(import_module(f"wayline.{name}.settings").Settings for name in (*SERVICES, "standalone")),
)
GARBAGE = "no such thing:"


def takes(field: Any, text: str) -> bool:
    try:
        TypeAdapter(field.rebuild_annotation()).validate_python(text)
    except ValidationError:
        return False
    return True


SETTINGS = [
    pytest.param(kind, kind.variable(name), id=f"{kind.__module__}.{name}")
    for kind in CLASSES
    for name, field in kind.model_fields.items()
    if not takes(field, GARBAGE)
]


@pytest.mark.parametrize(("kind", "variable"), SETTINGS)
def test_an_unreadable_value_is_reported_with_its_variable(
    kind: type[EnvironmentSettings], variable: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(variable, GARBAGE)

    with pytest.raises(WrongSetting, match=rf"^{variable}: ") as wrong:
        kind()
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize("kind", CLASSES)
def test_a_variable_that_is_set_to_nothing_is_not_set(kind: type[EnvironmentSettings], monkeypatch: pytest.MonkeyPatch):
    for name in kind.model_fields:
        monkeypatch.delenv(kind.variable(name), raising=False)
    default = kind()
    for name in kind.model_fields:
        monkeypatch.setenv(kind.variable(name), "")

    assert kind() == default


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("WAYLINE_NATS_SEED", "garbage", "not the seed of an nkey"),
        ("WAYLINE_NATS_URL", "nats://here:port", "nats://host:port"),
        ("WAYLINE_NATS_URL", "http://here:1", "nats://host:port"),
        ("WAYLINE_POSTGRES_DSN", "garbage", "postgresql://user:password@host:port/database"),
        ("WAYLINE_HEALTH_PORT", "0", "greater than or equal to 1"),
        ("WAYLINE_CONNECT_WAIT_S", "nan", "finite"),
        ("WAYLINE_DRAIN_GRACE_S", "-1", "greater than or equal to 0"),
    ],
)
def test_what_every_service_shares_is_checked(variable: str, value: str, problem: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(variable, value)

    with pytest.raises(WrongSetting, match=rf"^{variable}: .*{problem}"):
        BusSettings()


def test_a_secret_that_is_wrong_is_not_repeated(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WAYLINE_POSTGRES_DSN", "postgresql://user:hunter2@host:port/db")

    with pytest.raises(WrongSetting) as wrong:
        BusSettings()

    assert "hunter2" not in str(wrong.value)
    assert wrong.value.__cause__ is None


def test_unreadable_json_is_reported_with_its_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WAYLINE_TOOL_REGISTRY_SERVERS", '[{"name": "bank"}, {"name":')

    with pytest.raises(WrongSetting, match=r"^WAYLINE_TOOL_REGISTRY_SERVERS: this is not JSON \(Expecting value"):
        import_module("wayline.tool_registry.settings").Settings()


@pytest.mark.parametrize("service", SERVICES)
async def test_a_wrong_setting_ends_a_service_with_2_and_one_line(service: str, tmp_path: Path):
    environment = {**os.environ, "WAYLINE_CONNECT_WAIT_S": "soon"}

    child = start_service(service, cwd=tmp_path, log=tmp_path / "log", env=environment)
    await until(lambda: child.exited, why="the service ends")

    assert child.process.returncode == 2
    assert (tmp_path / "log").read_text() == (
        "wayline: WAYLINE_CONNECT_WAIT_S: Input should be a valid number, unable to parse string as a number\n"
    )
