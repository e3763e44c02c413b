"""`wayline mcp import` and `add` show what a program is before anybody runs it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from wayline.contracts.imported_servers import planned
from wayline.standalone.commands import mcp, mcp_import
from wayline.standalone.terminal.server_views import import_line

FILE = {
    "mcpServers": {
        "My Files": {"command": "npx", "args": ["-y", "files; rm -rf /", "a\u200bb\nc"], "env": {"TOKEN": "canary"}},
        "remote": {"url": "https://mcp.invalid/mcp"},
    }
}
LINE = "my-files runs: npx -y 'files; rm -rf /' 'a\\u200bb\\nc'  (with TOKEN)"


@pytest.fixture
def asked(monkeypatch) -> list[Any]:
    """What reached the gateway, which answers that all is saved."""
    sent: list[Any] = []

    def conversation(work: Any, *, as_json: bool) -> Any:
        sent.append(work)
        return [
            {"given": "My Files", "name": "my-files", "saved": True, "why": "", "disabled": False, "dropped": ["tools"]}
        ]

    monkeypatch.setattr(mcp_import, "conversation", conversation)
    return sent


def imported(tmp_path, *words: str, content: Any = FILE) -> Any:
    file = tmp_path / "servers.json"
    file.write_text(json.dumps(content))
    return CliRunner().invoke(mcp.app, ["import", str(file), *words])


def test_no_imported_program_runs_before_a_person_agrees(asked, tmp_path):
    refused = imported(tmp_path)
    as_json = imported(tmp_path, "--json")

    assert [one.exit_code for one in (refused, as_json)] == [1, 1]
    assert refused.stderr.splitlines()[0] == LINE
    assert "nothing is imported" in refused.stderr and "--yes" in refused.stderr
    assert asked == []
    assert "canary" not in refused.output


@pytest.mark.parametrize(("answer", "calls"), [("y", 1), ("n", 0), ("", 0)])
def test_a_person_is_asked_on_a_terminal(asked, tmp_path, monkeypatch, answer: str, calls: int):
    monkeypatch.setattr(mcp_import, "on_terminal", lambda: True)
    file = tmp_path / "servers.json"
    file.write_text(json.dumps(FILE))

    done = CliRunner().invoke(mcp.app, ["import", str(file)], input=f"{answer}\n")

    assert LINE in done.stderr
    assert (len(asked), done.exit_code) == (calls, 1 - calls)


def test_a_script_says_yes_and_still_shows_the_programs(asked, tmp_path):
    done = imported(tmp_path, "--yes")

    assert (done.exit_code, len(asked)) == (0, 1)
    assert LINE in done.stderr
    assert "My Files as my-files: saved, without tools" in done.stdout
    assert "words of strangers" in done.stdout


def test_a_file_without_programs_is_imported_without_asking(asked, tmp_path):
    done = imported(tmp_path, content={"mcpServers": {"remote": {"url": "https://mcp.invalid/mcp"}}})

    assert (done.exit_code, len(asked), done.stderr) == (0, 1, "")


def test_adding_a_program_shows_its_command_line_first(monkeypatch):
    shown: list[str] = []

    def tried(name: str, config: dict[str, Any], *, as_json: bool) -> dict[str, Any]:
        shown.append("tried")
        return {"ok": False}

    monkeypatch.setattr(mcp, "_tried", tried)
    monkeypatch.setattr(mcp, "_saved_names", lambda *, as_json: {"other"})

    done = CliRunner().invoke(mcp.app, ["add", "files", "--", "npx", "-y", "a b"])

    assert done.stderr.splitlines()[0] == "files runs: npx -y 'a b'"
    assert shown == ["tried"]


def test_a_disabled_program_is_not_asked_about(asked, tmp_path):
    done = imported(tmp_path, content={"mcpServers": {"off": {"command": "npx", "disabled": True}}})

    assert (done.exit_code, len(asked), done.stderr) == (0, 1, "")


class Gateway:
    """Takes what is saved."""

    def __init__(self) -> None:
        self.saved: list[Any] = []

    async def whole(self, path: str, name: str) -> dict[str, Any]:
        return {"servers": [{"name": "there", "config": {}}]}

    async def put(self, path: str, body: dict[str, Any], *, params: Any = None) -> dict[str, Any]:
        name = path.rpartition("/")[2]
        self.saved.append((name, params))
        return {"advice": f"declare the effects of {name}"}


async def test_a_disabled_server_is_saved_without_being_run():
    servers = {
        "off": {"command": "npx", "disabled": True, "autoApprove": ["x"]},
        "on": {"command": "npx"},
        "not on": {"command": "npx", "enabled": False},
        "there": {"command": "npx"},
    }
    plan = [planned(given, server, {}) for given, server in servers.items()]
    gateway = Gateway()

    done = await mcp_import._import_all(gateway, plan, replace=False)

    assert gateway.saved == [("off", {"enabled": False}), ("on", None), ("not-on", {"enabled": False})]
    assert [(one["saved"], one["disabled"], one["dropped"]) for one in done] == [
        (True, True, ["autoApprove"]),
        (True, False, []),
        (True, True, []),
        (False, False, []),
    ]
    assert "--replace" in done[3]["why"]
    assert "\n  declare the effects of on" in import_line(done[1])
