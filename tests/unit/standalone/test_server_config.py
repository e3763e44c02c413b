"""Servers of desktop clients, as `wayline mcp import` reads them."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from wayline.standalone.commands.server_config import (
    CannotImport,
    asked,
    imported,
    plain_name,
    planned,
    without_defaults,
)


@pytest.mark.parametrize(
    ("given", "name"),
    [("github", "github"), ("My Files", "my-files"), ("a_b.c", "a-b-c"), ("x" * 40, "x" * 32), ("名前", "server")],
)
def test_a_clients_name_becomes_a_plain_one(given: str, name: str):
    assert plain_name(given) == name


@pytest.mark.parametrize(
    ("server", "config"),
    [
        ({"command": "npx", "args": ["-y", "p"], "env": {}}, {"command": "npx", "args": ["-y", "p"]}),
        ({"type": "stdio", "command": "files"}, {"command": "files"}),
        (
            {"type": "http", "url": "https://h/mcp", "headers": {"A": "b"}},
            {"url": "https://h/mcp", "headers": {"A": "b"}},
        ),
        ({"serverUrl": "https://h/mcp"}, {"url": "https://h/mcp"}),
        ({"transport": "SSE", "url": "https://h/sse"}, {"url": "https://h/sse", "sse": True}),
        ({"httpUrl": "https://h/mcp", "disabled": True, "autoApprove": ["x"]}, {"url": "https://h/mcp"}),
    ],
)
def test_every_clients_way_of_writing_a_server_is_read(server: dict, config: dict):
    assert imported(server, {}) == config


def test_variables_are_replaced_by_their_values():
    server = {
        "command": "${RUNNER:-npx}",
        "args": ["--root", "${env:HOME_DIR}/files"],
        "env": {"TOKEN": "${TOKEN}", "PLAIN": "$5"},
    }

    assert imported(server, {"TOKEN": "secret", "HOME_DIR": "/srv"}) == {
        "command": "npx",
        "args": ["--root", "/srv/files"],
        "env": {"TOKEN": "secret", "PLAIN": "$5"},
    }


@pytest.mark.parametrize(
    ("value", "why"),
    [("${TOKEN}", "set the variable TOKEN"), ("${input:token}", "filled in by the client that wrote the file")],
)
def test_a_value_that_is_not_there_is_asked_for(value: str, why: str):
    with pytest.raises(CannotImport, match=why):
        imported({"command": "npx", "env": {"TOKEN": value}}, {})


@pytest.mark.parametrize("field", ["cwd", "envFile"])
def test_a_field_without_which_a_program_differs_is_refused(field: str):
    with pytest.raises(CannotImport, match=f"its `{field}` cannot be kept"):
        imported({"command": "npx", field: "/srv"}, {})


def test_fields_without_a_meaning_here_are_named():
    plan = planned("files", {"command": "npx", "alwaysAllow": ["read"], "timeout": 60, "description": "Files."}, {})

    assert plan.dropped == ("alwaysAllow", "timeout")


@pytest.mark.parametrize(
    ("answers", "name", "config"),
    [
        (
            ["My Notes", "npx -y 'a b'", "TOKEN", "secret", "", "y", "n"],
            "my-notes",
            {"command": "npx", "args": ["-y", "a b"], "env": {"TOKEN": "secret"}, "trusted": True, "untrusted": False},
        ),
        (
            ["bank", "https://bank.example/mcp", "Bearer secret", "n", "y"],
            "bank",
            {
                "url": "https://bank.example/mcp",
                "headers": {"Authorization": "Bearer secret"},
                "trusted": False,
                "untrusted": True,
            },
        ),
    ],
    ids=["program", "url"],
)
def test_answers_on_a_terminal_become_a_server(answers: list[str], name: str, config: dict):
    app = typer.Typer()
    app.command()(lambda: print("\n" + json.dumps(asked())))

    done = CliRunner().invoke(app, input="\n".join(answers) + "\n")

    assert json.loads(done.stdout.splitlines()[-1]) == [name, config]
    assert "secret" not in "".join(done.stdout.splitlines()[:-1])


@pytest.mark.parametrize(("trusted", "untrusted"), [("n", True), ("y", False)])
def test_results_are_strangers_words_by_default_unless_trusted(trusted: str, untrusted: bool):
    app = typer.Typer()
    app.command()(lambda: print("\n" + json.dumps(asked()[1])))

    done = CliRunner().invoke(app, input=f"bank\nhttps://bank.example/mcp\n\n{trusted}\n\n")

    assert json.loads(done.stdout.splitlines()[-1])["untrusted"] is untrusted


def test_saying_that_a_server_is_no_stranger_is_kept():
    given = {"url": "https://h/mcp", "trusted": False, "untrusted": False, "oauth": None}

    assert without_defaults(given) == {"url": "https://h/mcp", "untrusted": False}
    assert without_defaults(given | {"untrusted": None}) == {"url": "https://h/mcp"}
