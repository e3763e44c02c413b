"""The registry's settings as an operator writes them."""

from __future__ import annotations

import json
from ipaddress import ip_address

import pytest
from pydantic import SecretStr, ValidationError

from wayline.contracts.errors import WrongSetting
from wayline.contracts.server_config import ServerSettings
from wayline.contracts.tools import Effect
from wayline.guarded_http import Blocked
from wayline.tool_registry.settings import Settings


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
        ({"name": "bank", "command": "bank", "headers": {"X-Key": "s3cret"}}, "no `url` to send them to"),
        ({"name": "bank", "url": "http://bank", "headers": {"Host": "s3cret"}}, "'Host' is no header"),
        ({"name": "bank", "url": "http://bank", "headers": {"mcp-name": "s3cret"}}, "'mcp-name' is no header"),
        ({"name": "bank", "url": "http://bank", "headers": {"a b": "s3cret"}}, "'a b' is no header"),
        ({"name": "bank", "url": "http://bank", "headers": {"X-Key": "s3cret\r\nA: b"}}, "a line end"),
        ({"name": "bank", "url": "http://bank", "effects": {"pay": "sometimes"}}, "effects.pay"),
    ],
)
def test_a_wrong_server_is_refused_by_the_field(server, problem):
    with pytest.raises(ValidationError, match=problem) as caught:
        ServerSettings.model_validate(server)
    assert "s3cret" not in str(caught.value)


def test_secrets_of_a_server_are_not_shown():
    hosted = ServerSettings(name="a", url="http://a", headers={"Authorization": SecretStr("s3cret")})
    program = ServerSettings(name="b", command="b", env={"TOKEN": "s3cret"})

    assert "s3cret" not in repr((hosted, program))
    assert hosted.headers["Authorization"].get_secret_value() == "s3cret"


def test_two_servers_of_one_name_are_refused():
    server = {"name": "bank", "url": "http://bank"}

    with pytest.raises(WrongSetting, match="WAYLINE_TOOL_REGISTRY_SERVERS: .*twice: bank"):
        Settings.model_validate({"servers": [server, server]})


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        ({"web_search_provider": "searxng"}, "web_search_url"),
        ({"web_search_provider": "brave"}, "web_search_key"),
        ({"web_search_provider": "altavista"}, "searxng"),
        ({"web_allowed_hosts": ["http://wiki.example"]}, "is no host"),
        ({"web_user_agent": "a\nb"}, "pattern"),
    ],
)
def test_wrong_web_settings_say_what_to_set(values: dict, hint: str):
    with pytest.raises(WrongSetting, match=hint):
        Settings(**values)


def test_inside_hosts_are_opened_for_all_or_for_one_tenant():
    settings = Settings.model_validate({"server_allowed_hosts": ["crm.corp.example:9000", "acme@10.1.2.3:*"]})

    acme, other = (settings.addresses_of(tenant) for tenant in ("acme", "globex"))

    for policy in (acme, other):
        policy.check_address("crm.corp.example", 9000, ip_address("10.9.9.9"))
        for host, port in (("10.1.2.4", 9000), ("127.0.0.1", 80), ("169.254.169.254", 80)):
            with pytest.raises(Blocked):
                policy.check_host(host, port)
    acme.check_host("10.1.2.3", 5_000)
    with pytest.raises(Blocked):
        other.check_host("10.1.2.3", 5_000)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("server_allowed_hosts", ["http://a"]),
        ("server_allowed_hosts", ["no tenant@10.1.2.3"]),
        ("http_proxy", "socks5://user:canary@proxy"),
        ("http_proxy", "http://user:canary@proxy/ path"),
        ("ca_file", "/nowhere/ca.pem"),
    ],
)
def test_a_wrong_way_to_servers_is_refused_without_a_password(name, value):
    with pytest.raises(WrongSetting, match=name.upper()) as caught:
        Settings.model_validate({name: value})

    assert "canary" not in str(caught.value)
