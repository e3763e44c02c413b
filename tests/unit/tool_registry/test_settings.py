"""The registry's settings as an operator writes them."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from wayline.contracts.errors import WrongSetting
from wayline.contracts.tools import Effect
from wayline.tool_registry.settings import ServerSettings, Settings


def test_servers_come_as_json(monkeypatch):
    servers = [{"name": "bank", "url": "http://bank/mcp", "effects": {"pay": "once", "ask": "read"}, "timeout_s": 5}]
    monkeypatch.setenv("WAYLINE_TOOL_REGISTRY_SERVERS", json.dumps(servers))

    assert Settings().servers == (
        ServerSettings(
            name="bank", url="http://bank/mcp", effects={"pay": Effect.ONCE, "ask": Effect.READ}, timeout_s=5
        ),
    )


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ({"name": "bank"}, "either `url` or `command`"),
        ({"name": "bank", "url": "http://bank", "command": "bank"}, "either `url` or `command`"),
        ({"name": "my__bank", "url": "http://bank"}, "name"),
        ({"name": "bank", "url": "http://bank", "effect": {}}, "effect"),
        ({"name": "bank", "url": "http://bank", "effects": {"pay": "sometimes"}}, "effects.pay"),
    ],
)
def test_a_wrong_server_is_refused_by_the_field(server, problem):
    with pytest.raises(ValidationError, match=problem):
        ServerSettings.model_validate(server)


def test_two_servers_of_one_name_are_refused():
    server = {"name": "bank", "url": "http://bank"}

    with pytest.raises(WrongSetting, match="WAYLINE_TOOL_REGISTRY_SERVERS: .*twice: bank"):
        Settings.model_validate({"servers": [server, server]})
