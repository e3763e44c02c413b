"""`wayline mcp add` replaces nothing unasked, and `wayline mcp set` changes one setting and keeps the others."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from wayline.standalone.commands import mcp, mcp_set

MASK = "**********"
SAVED = {
    "url": f"https://bank.example/mcp?{MASK}",
    "headers": {"Authorization": MASK},
    "effects": {"rate": "read", "pay": "once"},
    "ask": "never",
    "trusted": False,
    "untrusted": True,
    "timeout_s": 60,
}


class Gateway:
    """Holds one saved server."""

    def __init__(self) -> None:
        self.config: dict[str, Any] | None = dict(SAVED)
        self.params: Any = None

    async def get(self, path: str) -> dict[str, Any]:
        return {"name": "bank", "config": self.config}

    async def put(self, path: str, body: dict[str, Any], *, params: Any = None) -> dict[str, Any]:
        self.params = params
        self.config = {**body, "untrusted": not body["trusted"] if body["untrusted"] is None else body["untrusted"]}
        return {"name": "bank", "config": self.config}


@pytest.fixture
def gateway(monkeypatch) -> Gateway:
    import asyncio

    held = Gateway()
    monkeypatch.setattr(mcp_set, "conversation", lambda work, *, as_json: asyncio.run(work(held)))
    return held


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (["--no-untrusted"], {"untrusted": False}),
        (["--trusted"], {"trusted": True, "untrusted": False}),
        (["--trusted", "--untrusted"], {"trusted": True, "untrusted": True}),
        (["--no-trusted"], {}),
        (["--effect", "pay=idempotent"], {"effects": {"rate": "read", "pay": "idempotent"}}),
        (["--ask", "writes", "--timeout", "5"], {"ask": "writes", "timeout_s": 5}),
    ],
)
def test_one_setting_is_changed_and_the_others_stay(gateway: Gateway, words: list[str], changes: dict[str, Any]):
    done = CliRunner().invoke(mcp.app, ["set", "bank", *words])

    assert (done.exit_code, done.stdout.startswith("bank is changed: ")) == (0, True), done.output
    assert gateway.config == {**SAVED, **changes}


def test_a_change_of_nothing_is_refused(gateway: Gateway):
    done = CliRunner().invoke(mcp.app, ["set", "bank"])

    assert (done.exit_code, "say what is to change" in done.stderr) == (1, True)


def test_a_server_of_the_installation_cannot_be_changed(gateway: Gateway):
    gateway.config = None

    done = CliRunner().invoke(mcp.app, ["set", "bank", "--trusted"])

    assert (done.exit_code, "no server that you have saved" in done.stderr) == (1, True)


@pytest.fixture
def tried(monkeypatch) -> list[str]:
    """The names of servers that were tried, none of which can be connected to."""
    names: list[str] = []

    def note(name: str, config: dict[str, Any], *, as_json: bool) -> dict[str, Any]:
        names.append(name)
        return {"ok": False}

    monkeypatch.setattr(mcp, "_tried", note)
    monkeypatch.setattr(mcp, "_saved_names", lambda *, as_json: {"bank"})
    return names


ADD = ["add", "bank", "--url", "https://other.example/mcp"]


@pytest.mark.parametrize("words", [ADD, [*ADD, "--json"], [*ADD, "--force"]])
def test_a_saved_server_is_not_replaced_unasked(tried: list[str], words: list[str]):
    done = CliRunner().invoke(mcp.app, words)

    assert (done.exit_code, tried) == (1, [])
    assert "bank is saved already" in done.stderr and "--replace" in done.stderr


def test_a_saved_server_is_replaced_on_demand(tried: list[str]):
    CliRunner().invoke(mcp.app, [*ADD, "--replace"])

    assert tried == ["bank"]


@pytest.mark.parametrize(("answer", "names"), [("y", ["bank"]), ("n", [])])
def test_a_person_is_asked_before_a_server_is_replaced(tried: list[str], monkeypatch, answer: str, names: list[str]):
    monkeypatch.setattr(mcp, "on_terminal", lambda: True)

    CliRunner().invoke(mcp.app, ADD, input=f"{answer}\n")

    assert tried == names


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["Foo Bar", "--url", "https://h/mcp"], "take small letters, digits and -, such as foo-bar"),
        (["foo", "--url", "https://h/mcp", "--", "npx"], "either --url or a command after --, not both"),
        (["foo"], "--url URL, or its command after --"),
    ],
)
def test_a_wrong_server_is_refused_in_words_of_the_command(tried: list[str], words: list[str], why: str):
    done = CliRunner().invoke(mcp.app, ["add", *words])

    assert (done.exit_code, why in done.stderr, tried) == (1, True, [])


def test_effects_are_accepted_without_any_other_change(gateway: Gateway):
    done = CliRunner().invoke(mcp.app, ["set", "bank", "--accept-effects"])

    assert (done.exit_code, gateway.params) == (0, {"accept_effects": True}), done.output
    assert gateway.config is not None and gateway.config["effects"] == SAVED["effects"]
