"""Servers as options and answers on a terminal describe them."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from wayline.standalone.commands.server_config import asked, without_defaults


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
