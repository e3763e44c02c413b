"""Which variables a tenant's program may be given: none that decides which code runs, unless the operator names it."""

from __future__ import annotations

import json

import pytest

from wayline.contracts.errors import Reject
from wayline.contracts.server_config import ServerConfig
from wayline.tool_registry.allowed_programs import AllowedCommand, require_program
from wayline.tool_registry.settings import Settings

DECIDING = """
PATH LD_PRELOAD DYLD_INSERT_LIBRARIES HOME XDG_CONFIG_HOME BROWSER ENV BASH_ENV SHELLOPTS GIT_SSH_COMMAND
NODE_OPTIONS NODE_PATH npm_config_registry NPM_CONFIG_SCRIPT_SHELL YARN_RC_FILENAME
PYTHONPATH PYTHONWARNINGS PYTHONSTARTUP PIP_INDEX_URL pip_index_url UV_INDEX_URL UV_PYTHON
PERL5OPT PERL5LIB RUBYOPT RUBYLIB JAVA_TOOL_OPTIONS _JAVA_OPTIONS CLASSPATH DOTNET_STARTUP_HOOKS
""".split()
PLAIN = "TOKEN GITHUB_PERSONAL_ACCESS_TOKEN DATABASE_URL HTTPS_PROXY LOG_LEVEL NODE_ENV PYTHONUNBUFFERED PATH_TO_DB"
LINE = "npx -y @scope/x@1.2.3"
NAMED = AllowedCommand(command=LINE, env=("TOKEN", "NODE_OPTIONS"))


def program(*variables: str) -> ServerConfig:
    return ServerConfig.model_validate(
        {"command": "npx", "args": ["-y", "@scope/x@1.2.3", "--root"], "env": dict.fromkeys(variables, "canary")}
    )


@pytest.mark.parametrize("variable", DECIDING)
@pytest.mark.parametrize("entry", [LINE, "npx"])
def test_a_variable_that_decides_what_runs_is_refused(variable: str, entry: str):
    with pytest.raises(Reject, match=f"{variable} in `env` may decide which code runs") as refused:
        require_program(program("TOKEN", variable), (entry,))

    assert refused.value.code == "server_not_allowed"
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("variable", PLAIN.split())
def test_a_plain_entry_allows_other_variables(variable: str):
    require_program(program(variable), (LINE,))


def test_an_entry_allows_the_variables_that_it_names():
    require_program(program("TOKEN", "NODE_OPTIONS"), (NAMED,))
    require_program(program("TOKEN", "NODE_OPTIONS"), (LINE, NAMED))
    require_program(program("LOG_LEVEL"), (LINE, NAMED))


@pytest.mark.parametrize("variable", ["LOG_LEVEL", "token", "PYTHONPATH"])
def test_an_entry_with_variables_allows_no_other(variable: str):
    with pytest.raises(Reject, match=rf"{variable} in `env`: .* allows npx .*\(variables: TOKEN, NODE_OPTIONS\)"):
        require_program(program("TOKEN", variable), (NAMED,))


def test_an_entry_with_variables_allows_no_other_command():
    with pytest.raises(Reject, match="the command npx -y other is not allowed here"):
        require_program(ServerConfig(command="npx", args=("-y", "other")), (NAMED,))


def test_commands_with_variables_come_as_json(monkeypatch):
    entries = ["uvx", {"command": LINE, "env": ["TOKEN", "NODE_OPTIONS"]}]
    monkeypatch.setenv("WAYLINE_TOOL_REGISTRY_COMMANDS", json.dumps(entries))

    assert Settings().commands == ("uvx", NAMED)
