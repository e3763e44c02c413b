"""What a tenant may save, and how far it is believed."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.contracts.mcp_servers import ServerConfig
from wayline.tool_registry.saved_servers import is_untrusted, of_tenant


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
