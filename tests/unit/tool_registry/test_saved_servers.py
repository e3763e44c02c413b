"""What a tenant may save, and how far it is believed."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.contracts.errors import Reject
from wayline.contracts.server_config import ServerConfig
from wayline.tool_registry.saved_servers import is_untrusted, of_tenant, require_allowed
from wayline.tool_registry.settings import Settings


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
