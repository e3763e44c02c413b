"""`wayline replicas` where the bus cannot be asked: names are needed to drain one, and the gateway tells them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wayline.standalone.errors import StandaloneError
from wayline.standalone.settings import Settings
from wayline.standalone.upgrade import show_replicas as module
from wayline.standalone.upgrade.replicas import BEFORE, Replica, Replicas
from wayline.standalone.upgrade.show_replicas import show_replicas

NAME = "router-wayline-router-6c5f7d9b8-x2x9k-4711"
NEEDS = {"bus": "ok", "postgres": "no answer within 3 s, and a line that is longer than a terminal is wide"}
ROUTER = {"name": NAME, "service": "router", "version": "0.2.0", "needs": NEEDS, "in_hand": 3, "drained_at": None}


def answered(monkeypatch: pytest.MonkeyPatch, *states: dict[str, Any]) -> None:
    async def told() -> list[dict[str, Any]]:
        return list(states)

    monkeypatch.setattr(module, "_states", told)


async def test_replicas_of_a_remote_gateway_are_listed_without_the_bus(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    answered(monkeypatch, ROUTER)

    await show_replicas(Settings.model_validate({"data_dir": tmp_path}))
    plain = capsys.readouterr()
    await show_replicas(Settings.model_validate({"data_dir": tmp_path}), as_json=True)

    assert plain.out == f"{NAME}\trouter\t0.2.0\tpostgres: {NEEDS['postgres']}\t3\n"
    assert "no bus is known" in plain.err
    assert json.loads(capsys.readouterr().out) == {"replicas": [], "states": [ROUTER]}


async def test_a_pipe_gets_one_table_with_silent_processes_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    answered(monkeypatch, {**ROUTER, "needs": {}})
    connected = [
        Replica(*one) for one in (("router", "0.2.0", "a"), ("router", "0.2.0", "b"), ("executor", BEFORE, "c"))
    ]

    async def found(*_: object) -> Replicas:
        return Replicas(connected)

    monkeypatch.setattr(module, "_connected", found)
    await show_replicas(Settings.model_validate({"data_dir": tmp_path}))

    assert [line.split("\t") for line in capsys.readouterr().out.splitlines()] == [
        [NAME, "router", "0.2.0", "ready", "3"],
        ["-", "router", "0.2.0", "not known", "-"],
        ["-", "executor", BEFORE, "not known", "-"],
    ]


async def test_replicas_that_nobody_tells_of_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    answered(monkeypatch)

    with pytest.raises(StandaloneError, match="no bus is known"):
        await show_replicas(Settings.model_validate({"data_dir": tmp_path}))
