"""Where the gateway is, as the variables and the data directory say."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from wayline.client import Address, WrongVariable


@pytest.fixture
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory where nothing runs, and no variable that says where something does."""
    for name in ("WAYLINE_URL", "WAYLINE_HTTP_PORT", "WAYLINE_API_KEY", "WAYLINE_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_platform_that_runs_in_this_directory_is_found(nothing_set: Path, monkeypatch: pytest.MonkeyPatch):
    note = nothing_set / ".wayline" / "up.json"
    note.parent.mkdir()

    def address(content: object) -> str:
        note.write_text(content if isinstance(content, str) else json.dumps(content))
        return Address.from_environment().url

    assert address({"pid": os.getpid(), "gateway": "http://127.0.0.1:1234"}) == "http://127.0.0.1:1234"
    nobody = 2**22 + 1
    for nothing in (
        {"pid": nobody, "gateway": "http://127.0.0.1:1234"},
        {"pid": os.getpid(), "gateway": None},
        "",
        "[]",
    ):
        assert address(nothing) == "http://127.0.0.1:8080"
    monkeypatch.setenv("WAYLINE_HTTP_PORT", "9000")
    assert address({"pid": os.getpid(), "gateway": "http://127.0.0.1:1234"}) == "http://127.0.0.1:9000"


def test_the_address_comes_from_the_environment(nothing_set: Path, monkeypatch: pytest.MonkeyPatch):
    assert Address.from_environment() == Address("http://127.0.0.1:8080")

    monkeypatch.setenv("WAYLINE_HTTP_PORT", "9000")
    assert Address.from_environment() == Address("http://127.0.0.1:9000")

    monkeypatch.setenv("WAYLINE_URL", "https://wayline.example/")
    monkeypatch.setenv("WAYLINE_API_KEY", "wl_key")
    assert Address.from_environment() == Address("https://wayline.example", "wl_key")


@pytest.mark.parametrize(
    ("variable", "value"), [("WAYLINE_HTTP_PORT", "http"), ("WAYLINE_URL", "127.0.0.1:8080"), ("WAYLINE_API_KEY", "ü")]
)
def test_a_variable_that_cannot_be_used_is_named(
    variable: str, value: str, nothing_set: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(variable, value)

    with pytest.raises(WrongVariable, match=f"^{variable}: "):
        Address.from_environment()
