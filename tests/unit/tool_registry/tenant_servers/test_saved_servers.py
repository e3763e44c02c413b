"""What a tenant may save, and how far it is believed."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.contracts.errors import Reject
from wayline.contracts.server_config import MASK, ServerConfig
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.tenant_servers.saved_servers import (
    filled,
    is_untrusted,
    kept,
    of_tenant,
    require_allowed,
    split,
)


@pytest.mark.parametrize(
    ("said", "untrusted"),
    [
        ({}, True),
        ({"trusted": True}, False),
        ({"untrusted": False}, False),
        ({"untrusted": True, "trusted": True}, True),
    ],
)
def test_a_tenants_server_is_untrusted_unless_said_otherwise(said: dict[str, Any], untrusted: bool):
    config = ServerConfig.model_validate({"url": "https://bank.example/mcp"} | said)

    assert is_untrusted(config) is untrusted
    assert of_tenant(config, "bank").untrusted is untrusted


PINNED = ("npx -y '@scope/x y@1.2.3'", "/opt/my tools/run")


@pytest.mark.parametrize(
    ("command", "args", "allowed"),
    [
        ("npx", ("-y", "@scope/x y@1.2.3"), True),
        ("npx", ("-y", "@scope/x y@1.2.3", "--root", "/srv"), True),
        ("/opt/my tools/run", ("anything",), True),
        ("npx", (), False),
        ("npx", ("-y",), False),
        ("npx", ("-y", "@scope/x y@1.2.4"), False),
        ("npx", ("-y", "@scope/x y@1.2.3-evil"), False),
        ("npx", ("-y", "-y", "@scope/x y@1.2.3"), False),
        ("npx", ("@scope/x y@1.2.3", "-y"), False),
        ("npx", ("-y", "@scope/x", "y@1.2.3"), False),
        ("npx -y", ("@scope/x y@1.2.3",), False),
    ],
)
def test_an_allowed_command_line_fixes_its_arguments(command: str, args: tuple[str, ...], allowed: bool):
    config, settings = ServerConfig(command=command, args=args), Settings(commands=PINNED)

    if allowed:
        require_allowed(config, settings)
    else:
        with pytest.raises(Reject, match="is not allowed here"):
            require_allowed(config, settings)


REMOTE = {"url": "https://bank.example/mcp?key=canary", "headers": {"Authorization": "Bearer canary"}}
PROGRAM = {"command": "npx", "args": ["-y", "bank"], "env": {"TOKEN": "canary", "HOST": "bank.example"}}
CLIENT = {"client_id": "we", "client_secret": "canary", "issuer": "https://login.example"}
MASKED_PROGRAM = {**PROGRAM, "env": {"TOKEN": MASK, "HOST": MASK}}


def changed(saved: dict[str, Any], sent: dict[str, Any]) -> ServerConfig:
    """What is run of a configuration that is sent for a saved one."""
    masked, secrets = split(ServerConfig.model_validate(saved))
    config = ServerConfig.model_validate(sent)
    return filled(config, kept(secrets, config, saved=masked))


@pytest.mark.parametrize(
    ("saved", "sent"),
    [
        (REMOTE, {"url": "http://bank.example/mcp", "headers": {"Authorization": MASK}}),
        (REMOTE, {"url": "https://bank.example:8443/mcp", "headers": {"Authorization": MASK}}),
        (REMOTE, {"url": "https://bank.example.evil/mcp", "headers": {"Authorization": MASK}}),
        (REMOTE, {"url": f"https://evil.example/mcp?{MASK}"}),
        (REMOTE, {"url": f"https://bank.example:x/mcp?{MASK}"}),
        (PROGRAM, {**MASKED_PROGRAM, "command": "sh"}),
        (PROGRAM, {**MASKED_PROGRAM, "args": ["-y", "evil"]}),
        (PROGRAM, {**MASKED_PROGRAM, "env": {"TOKEN": MASK, "HOST": "evil.example"}}),
        (PROGRAM, {**MASKED_PROGRAM, "env": {"TOKEN": MASK, "PROXY": "evil.example"}}),
        (
            {"url": "https://bank.example/mcp", "oauth": CLIENT},
            {
                "url": "https://bank.example/mcp",
                "oauth": {**CLIENT, "client_secret": MASK, "issuer": "https://evil.example"},
            },
        ),
    ],
)
def test_a_mask_keeps_no_secret_for_another_place(saved: dict[str, Any], sent: dict[str, Any]):
    with pytest.raises(Reject, match="none is stored for this") as refused:
        changed(saved, sent)

    assert (refused.value.code, refused.value.status) == ("no_stored_secret", 422)


@pytest.mark.parametrize(
    ("saved", "sent", "whole"),
    [
        (
            REMOTE,
            {"url": f"https://BANK.example:443/other?{MASK}", "headers": {"Authorization": MASK}, "timeout_s": 7},
            {"url": "https://BANK.example:443/other?key=canary", "headers": REMOTE["headers"], "timeout_s": 7},
        ),
        (PROGRAM, {**MASKED_PROGRAM, "ask": "always"}, {**PROGRAM, "ask": "always"}),
        (PROGRAM, {**PROGRAM, "env": {"TOKEN": MASK}}, {**PROGRAM, "env": {"TOKEN": "canary"}}),
        (
            {"url": "https://bank.example/mcp", "oauth": CLIENT},
            {"url": "https://other.example/mcp", "oauth": {**CLIENT, "client_secret": MASK}},
            {"url": "https://other.example/mcp", "oauth": CLIENT},
        ),
    ],
)
def test_a_mask_keeps_a_secret_for_the_same_place(saved, sent, whole):
    assert changed(saved, sent) == ServerConfig.model_validate(whole)
