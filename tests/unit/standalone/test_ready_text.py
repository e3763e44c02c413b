"""How a job is sent, as `up` shows it: each command can be pasted in any directory."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from wayline.client.address import Address
from wayline.standalone.launch.ready_text import next_job


def test_the_command_finds_its_gateway_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root = tmp_path / "my data"
    (root / "credentials").mkdir(parents=True)
    (root / "up.json").write_text('{"pid": 1, "gateway": "http://127.0.0.1:9123"}')
    (root / "credentials" / "machine-key").write_text("wl_machine")
    for name in ("WAYLINE_URL", "WAYLINE_HTTP_PORT", "WAYLINE_API_KEY", "WAYLINE_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)

    shown = next_job("http://127.0.0.1:9123", "nats://127.0.0.1:4222", root)
    [command] = [line for line in shown.splitlines() if " run " in line]
    variable, program, *_ = shlex.split(command)
    name, _, value = variable.partition("=")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv(name, value)

    assert Address.from_environment() == Address("http://127.0.0.1:9123", "wl_machine")
    assert Path(program).is_absolute() or program == "wayline"
