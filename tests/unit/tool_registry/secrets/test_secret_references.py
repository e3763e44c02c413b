"""References to secrets: where they may stand, what takes their place, and what looks like a secret without one."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from wayline.contracts.errors import Reject
from wayline.contracts.server_config import MASK, ServerConfig, ServerOAuth
from wayline.tool_registry.errors import NotBegun
from wayline.tool_registry.secrets.secret_references import names_of, require_references, resolved, secrets_in_clear
from wayline.tool_registry.tenant_servers.saved_servers import filled, kept, split

KEY = "sk-4f9Qz7Lm2XcV8bN1"


def plain(values) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in values.items()}


def test_references_are_resolved_in_every_field_and_encoded_in_urls():
    over_http = ServerConfig(
        url="https://bank.example/${secret:PATH}/mcp?key=${secret:KEY}&v=2",
        headers={"Authorization": "Bearer ${secret:KEY}", "X-Both": "${secret:PATH}-${secret:KEY}"},
    )
    program = ServerConfig(command="bank", args=["--token=${secret:KEY}"], env={"TOKEN": "${secret:KEY}"})
    values = {"PATH": "a/b c:1", "KEY": "k&1"}

    sent, run = resolved(over_http, values), resolved(program, values)

    assert sent.url == "https://bank.example/a%2Fb%20c:1/mcp?key=k%261&v=2"
    assert plain(sent.headers) == {"Authorization": "Bearer k&1", "X-Both": "a/b c:1-k&1"}
    assert (run.args, plain(run.env)) == (("--token=k&1",), {"TOKEN": "k&1"})
    assert names_of(over_http) == {"PATH", "KEY"}


def test_a_missing_secret_is_named_and_no_line_end_sent():
    config = ServerConfig(url="https://bank.example/mcp", headers={"X-Key": "${secret:KEY}"})

    with pytest.raises(NotBegun, match="no secret 'KEY'"):
        resolved(config, {})
    with pytest.raises(NotBegun, match="'X-Key' has a line end"):
        resolved(config, {"KEY": "a\nX-Other: b"})


def test_a_reference_is_shown_as_it_is_and_a_value_masked():
    config = ServerConfig(
        url="https://bank.example/mcp?key=${secret:KEY}",
        headers={"Authorization": "Bearer ${secret:KEY}", "X-Mixed": f"{KEY}-${{secret:KEY}}"},
    )

    masked, secrets = split(config)

    shown = masked.model_dump(mode="json")
    assert shown["url"] == config.url
    assert shown["headers"] == {"Authorization": "Bearer ${secret:KEY}", "X-Mixed": MASK}
    assert secrets == {"headers": {"X-Mixed": f"{KEY}-${{secret:KEY}}"}}
    assert filled(masked, secrets) == config


def test_a_masked_variable_keeps_its_value_beside_the_same_reference_alone():
    env = {"TOKEN": SecretStr("${secret:KEY}"), "OTHER": SecretStr(KEY)}
    masked, secrets = split(ServerConfig(command="bank", env=env))
    moved = masked.model_copy(update={"env": {**masked.env, "TOKEN": SecretStr("${secret:ANOTHER}")}})

    assert kept(secrets, masked, saved=masked) == secrets
    assert kept(secrets, moved, saved=masked) == {}


@pytest.mark.parametrize(
    "config",
    [
        {"url": "https://bank.example/${secret:no name}"},
        {"url": "https://bank.example/${secret:}"},
        {"command": "bank", "args": ["${secret:a"]},
        {"url": "https://bank.example/${secret:KEY}", "oauth": ServerOAuth()},
    ],
)
def test_a_reference_that_means_nothing_is_refused(config: dict):
    with pytest.raises(Reject):
        require_references(ServerConfig(**config))


@pytest.mark.parametrize(
    "config",
    [
        {"url": f"https://bank.example/mcp/{KEY}9/sse"},
        {"url": "https://bank.example/bot7714023:AAF9x2kQe7Lw0ZpTt5/mcp"},
        {"url": "https://bank.example/0d4c1b9e-6f1a-4b53-9d3e-7f2b8a6c5d11/mcp"},
        {"url": "https://bank.example/mcp;token=abc"},
        {"command": "bank", "args": ["--api-key", "abc"]},
        {"command": "bank", "args": ["--db", f"postgres://shop:{KEY}7@db"]},
        {"command": "bank", "args": ["password=hunter2"]},
    ],
)
def test_what_looks_like_a_secret_is_warned_of_without_it(config: dict):
    [warning] = secrets_in_clear(ServerConfig(**config))

    assert "wayline mcp secrets put" in warning
    assert KEY not in warning


@pytest.mark.parametrize(
    "config",
    [
        {"url": "https://bank.example/api/v2/organizations/mcp-server/streamable-http"},
        {"url": "https://bank.example/${secret:KEY}/mcp?key=abc", "headers": {"X-Key": SecretStr(KEY)}},
        {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem@2026.1.14", "/srv/files-of-2026"]},
        {"command": "bank", "args": ["--token", "${secret:KEY}", "--keyring", "none", "--token=${secret:KEY}"]},
        {"command": "bank", "args": ["--key", "-v"]},
    ],
)
def test_words_versions_and_references_are_not_warned_of(config: dict):
    assert secrets_in_clear(ServerConfig(**config)) == ()
