"""Servers of desktop clients, as `wayline mcp import` and `POST /v1/mcp/servers/import` read them."""

from __future__ import annotations

import pytest

from wayline.contracts.imported_servers import CannotImport, imported, plain_name, planned
from wayline.contracts.server_config import CONFIG_MAX_BYTES


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


def test_without_an_environment_only_defaults_and_stored_secrets_have_values():
    kept = {"url": "https://${HOST:-h}/mcp", "headers": {"Authorization": "Bearer ${secret:TOKEN}"}}

    assert imported(kept, None) == {"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${secret:TOKEN}"}}
    with pytest.raises(CannotImport, match="put the value in its place, or `\\${secret:NAME}`"):
        imported({"command": "npx", "env": {"TOKEN": "${TOKEN}"}}, None)


@pytest.mark.parametrize(
    ("given", "server", "why"),
    [
        ("text", "npx", "no object"),
        ("large", {"command": "npx", "args": ["x" * CONFIG_MAX_BYTES]}, "more than 65536 bytes"),
        ("n" * 201, {"command": "npx"}, "more than 200 characters"),
    ],
)
def test_an_entry_that_cannot_be_read_has_a_problem(given: str, server: object, why: str):
    plan = planned(given, server, None)

    assert why in plan.why and plan.config == {} and len(plan.given) <= 200
