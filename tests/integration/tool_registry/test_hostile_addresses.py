"""No form of an inside address is reached by any door of the tool-registry: pages, servers, links to images."""

from __future__ import annotations

import json

import pytest

from wayline.contracts.errors import Reject
from wayline.contracts.mcp_servers import ServerReport, TryServer
from wayline.contracts.server_config import ServerConfig
from wayline.guarded_http import AddressPolicy
from wayline.simulator.website import Page, Website
from wayline.testkit.walks import cases
from wayline.tool_registry.connection.server_transport import Confinement, http_client
from wayline.tool_registry.errors import NotBegun
from wayline.tool_registry.logins import oauth_flow
from wayline.tool_registry.logins.oauth_flow import CannotLogIn

LOOPBACK = """
    127.0.0.1 localhost LOCALHOST. 127.1 127.0.1 127.000.000.001 0x7f.1 0x7f000001 0x7f.0.0.1 2130706433 017700000001
    0177.0.0.1 0 0.0.0.0 127.255.255.254 [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::7f00:1]
    [64:ff9b:1::7f00:1] [2002:7f00:1::] [0:0:0:0:0:ffff:127.0.0.1] %31%32%37.0.0.1
    \u2460\u2461\u2466.\u24ea.\u24ea.\u2460 127\u30020\u30020\u30021
""".split()
INSIDE = """
169.254.169.254 [fd00:ec2::254] 2852039166 0xa9fea9fe 0251.0376.0251.0376 10.0.0.1 172.16.0.1 192.168.0.1 100.64.0.1
100.100.100.200 168.63.129.16 192.0.0.8 198.18.0.1 224.0.0.1 255.255.255.255 [fe80::1] [fec0::1] [fd00::1] [ff02::1]
""".split()
KEY = "an-images-key"
URLS_MAX = 3


def urls(site: Website) -> list[str]:
    return [f"http://{host}:{site.port}/secret" for host in (*LOOPBACK, *INSIDE)]


async def test_no_inside_address_is_fetched_in_any_form(platform):
    async with Website({"/secret": Page("secret"), "/robots.txt": Page("")}) as inside:
        # The port may be reached: only the address is in the way.
        await platform.registry(web_ports=[inside.port])
        every = urls(inside)
        for at in range(0, len(every), URLS_MAX):
            ask = platform.ask("web_fetch", {"urls": every[at : at + URLS_MAX]}, job=f"j{at}")
            reply = await platform.once(ask, timeout_s=30)
            assert reply.status == "failed" and "secret" not in reply.content, every[at : at + URLS_MAX]

    assert inside.seen == []


async def test_no_inside_address_is_tried_as_a_server(platform):
    reached = []
    async with Website() as inside:
        await platform.registry()
        for url in urls(inside):
            ask = TryServer(tenant=platform.tenant, config=ServerConfig.model_construct(url=url))
            try:
                report = await platform.bus.ask(ask, ServerReport, timeout_s=30)
            except Reject:
                continue
            if report.ok:
                reached.append(url)

    assert (reached, inside.seen) == ([], [])


async def test_no_image_is_fetched_from_an_inside_address(platform):
    linked: list[str] = []

    def answer(_: object) -> Page:
        return Page(json.dumps({"data": [{"url": linked[-1]}]}), media_type="application/json")

    async with Website() as inside, Website({"/v1/images/generations": answer}) as provider:
        base = provider.url("/v1")
        await platform.registry(
            image_model="sd-local", image_base_url=base, image_key=KEY, image_usd="0", images_per_minute=1_000
        )
        for number, url in enumerate(urls(inside)):
            linked.append(url)
            ask = platform.ask("image_generate", {"prompt": "A lighthouse"}, job=f"j{number}")
            reply = await platform.call(ask)
            assert reply.error is not None and "could not be fetched" in reply.error.message, url

    assert inside.seen == []


@pytest.mark.parametrize("status", cases([301, 302, 303, 307, 308]))
async def test_a_servers_redirect_is_not_followed(platform, status: int):
    async with Website() as inside, Website() as server:
        server.pages["/mcp"] = Page(status=status, headers={"Location": inside.url("/mcp")})
        await platform.registry(server_allowed_hosts=["127.0.0.1:*"])
        ask = TryServer(tenant=platform.tenant, config=ServerConfig(url=server.url("/mcp")))
        report = await platform.bus.ask(ask, ServerReport, timeout_s=30)

    assert not report.ok
    assert server.seen != [] and inside.seen == []


async def test_no_endpoint_of_logins_inside_is_asked():
    async with Website({"/token": Page("{}"), "/revoke": Page("{}")}) as inside:
        here = f"http://127.0.0.1:{inside.port}"
        metadata = {
            "issuer": here,
            "authorization_endpoint": f"{here}/authorize",
            "token_endpoint": f"{here}/token",
            "revocation_endpoint": f"{here}/revoke",
        }
        client = {"client_id": "c", "redirect_uris": [f"{here}/back"], "token_endpoint_auth_method": "none"}
        login = {
            **{"url": f"{here}/mcp", "resource": f"{here}/mcp", "redirect_uri": f"{here}/back", "verifier": "v"},
            **{"metadata": metadata, "client": client, "refresh_token": "r", "access_token": "a", "scope": None},
        }
        confined = Confinement(AddressPolicy())
        async with http_client(confined, connections_max=1) as http:
            with pytest.raises(CannotLogIn):
                await oauth_flow.finish(http, login, code="c", iss=here)
            with pytest.raises(NotBegun):
                await oauth_flow.refreshed(http, login)
            assert not await oauth_flow.revoke(http, login)
        open_client = Confinement(AddressPolicy.of(["127.0.0.1:*"]))
        async with http_client(open_client, connections_max=1) as http:
            assert not http.follow_redirects

    assert inside.seen == []
