"""Which variables a tenant's program may be given: those that the operator names, and no other."""

from __future__ import annotations

import json
import shlex

import pytest

from wayline.contracts.errors import Reject
from wayline.contracts.server_config import ServerConfig
from wayline.tool_registry.programs.allowed_programs import AllowedCommand, granted, require_program
from wayline.tool_registry.settings import Settings

VARIABLES = "PATH LD_PRELOAD CC MAKEFLAGS CHROME_EXECUTABLE_PATH AWS_CONFIG_FILE HTTPS_PROXY TOKEN LOG_LEVEL".split()
LINE = "npx -y @scope/x@1.2.3"
NAMED = AllowedCommand(command=LINE, env=("TOKEN", "NODE_OPTIONS"))


def program(*variables: str) -> ServerConfig:
    return ServerConfig.model_validate(
        {"command": "npx", "args": ["-y", "@scope/x@1.2.3", "--root"], "env": dict.fromkeys(variables, "canary")}
    )


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("entry", [LINE, "npx"])
def test_a_plain_entry_allows_no_variable(variable: str, entry: str):
    with pytest.raises(Reject, match=f"{variable} in `env`: the operator has allowed .* without variables") as refused:
        require_program(program(variable), (entry,))

    assert refused.value.code == "server_not_allowed"
    assert json.dumps({"command": entry, "env": [variable]}) in str(refused.value)
    assert "canary" not in str(refused.value)


def test_an_entry_allows_the_variables_that_it_names():
    require_program(program("TOKEN", "NODE_OPTIONS"), (NAMED,))
    require_program(program("TOKEN", "NODE_OPTIONS"), (LINE, NAMED))
    require_program(program(), (LINE,))


@pytest.mark.parametrize("variable", ["LOG_LEVEL", "token", "PYTHONPATH"])
def test_an_entry_with_variables_allows_no_other(variable: str):
    with pytest.raises(Reject, match=rf"{variable} in `env`: .* allows npx .*\(variables: TOKEN, NODE_OPTIONS\)"):
        require_program(program("TOKEN", variable), (NAMED,))


def test_an_entry_with_variables_allows_no_other_command():
    with pytest.raises(Reject, match="the command npx -y other is not allowed here"):
        require_program(ServerConfig(command="npx", args=("-y", "other")), (NAMED,))


def test_a_refused_program_names_the_setting_that_allows_it(monkeypatch: pytest.MonkeyPatch):
    config = ServerConfig(command="npx", args=("-y", "it's here"))
    with pytest.raises(Reject) as refused:
        require_program(config, ())
    words = shlex.split(str(refused.value).split("`")[1])
    variable, _, value = words[1].partition("=")
    monkeypatch.setenv(variable, value)

    assert words[0] == "export"
    require_program(config, Settings().commands)


def test_a_command_line_too_long_to_show_is_named():
    with pytest.raises(Reject, match=r"""COMMANDS='\["npx"\]'"""):
        require_program(ServerConfig(command="npx", args=("x" * 301,)), ())


def test_commands_with_variables_come_as_json(monkeypatch):
    entries = ["uvx", {"command": LINE, "env": ["TOKEN", "NODE_OPTIONS"]}]
    monkeypatch.setenv("WAYLINE_TOOL_REGISTRY_COMMANDS", json.dumps(entries))

    assert Settings().commands == ("uvx", NAMED)


def test_entries_give_a_program_files_and_hosts():
    entry = AllowedCommand(command="python /srv/notes.py", reads=("/srv/lib",), hosts=("api.example.com",))

    assert granted(("python", "/srv/notes.py", "/etc/shadow"), ("python", entry, "npx")) == (
        ["api.example.com"],
        ["python", "python", "/srv/notes.py", "/srv/lib"],
    )
