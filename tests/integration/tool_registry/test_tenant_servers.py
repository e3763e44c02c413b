"""Servers that tenants save: live on every replica, separate for each tenant, refused where they are not allowed."""

from __future__ import annotations

import asyncio
import sys
from base64 import b64encode
from typing import Any

import pytest
import pytest_asyncio

from wayline.contracts.errors import Reject
from wayline.contracts.mcp_servers import (
    DeleteServer,
    EnableServer,
    GetServer,
    ListServers,
    PutServer,
    ServerDeleted,
    ServerList,
    ServerReport,
    ServerView,
    State,
    TryServer,
)
from wayline.contracts.server_config import MASK, ServerConfig
from wayline.contracts.tools import ListTools, ToolList
from wayline.testkit import until
from wayline.testkit.plain_mcp import plain_program
from wayline.tool_registry.programs.jails import HOME

from .conftest import RegistryPlatform, new_tenant

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
alone = pytest.mark.asyncio(loop_scope="function")
"""For a test that starts and stops registries, or has its own settings."""

KEYS = f"k1:{b64encode(bytes(range(32))).decode()}"
PROGRAM = plain_program("""
import os, resource, sys
server = MCPServer("notes")

@server.tool()
def environment() -> str:
    return " ".join(sorted(os.environ))

@server.tool()
def arguments() -> str:
    return "|".join(sys.argv[1:])

@server.tool()
def limits() -> str:
    return " ".join(str(resource.getrlimit(kind)[0]) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE))

@server.tool()
def directory() -> str:
    return os.getcwd()

@server.tool()
def eat() -> str:
    return str(len(bytearray(200_000_000)))

server.run()
""")
ALLOWED: dict[str, Any] = {
    "keys": KEYS,
    "commands": [{"command": sys.executable, "env": ["TOKEN"]}],
    "server_allowed_hosts": ["127.0.0.1:*"],
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_registry(shared_platform: RegistryPlatform) -> RegistryPlatform:
    await shared_platform.registry(shared_platform.effects.settings(), **ALLOWED, program_files_max=64)
    return shared_platform


def program(platform, *args: str, **more: Any) -> dict[str, Any]:
    """A tenant's server that is a program."""
    file = platform.tmp_path / "notes.py"
    file.write_text(PROGRAM)
    return {"command": sys.executable, "args": [str(file), *args], **more}


async def put(platform, name: str, tenant: str | None = None, **config: Any) -> ServerView:
    ask = PutServer(tenant=tenant or platform.tenant, name=name, config=ServerConfig(**config))
    return await platform.bus.ask(ask, ServerView)


async def names(platform, tenant: str | None = None) -> set[str]:
    listed = await platform.bus.ask(ListTools(tenant=tenant or platform.tenant), ToolList, timeout_s=10)
    return {tool.name for tool in listed.tools}


async def until_listed(platform, *tools: str) -> None:
    async def are() -> bool:
        return set(tools) <= await names(platform)

    await until(are, why=f"{tools} are listed")


async def until_connected(platform, name: str) -> None:
    """Wait until a server that was connected before is so again: its tools are listed meanwhile."""

    async def connected() -> bool:
        view = await platform.bus.ask(GetServer(tenant=platform.tenant, name=name), ServerView)
        return view.state is State.CONNECTED

    await until(connected, why=f"{name} is connected")


async def content(platform, tool: str, **more: Any) -> str:
    reply = await platform.call(platform.ask(tool, **more))
    assert reply.error is None, reply.error
    return reply.content


async def test_a_saved_server_can_be_called_at_once(shared):
    view = await put(shared, "mine", url=shared.effects.url, effects={"look_read": "read"})
    reply = await shared.call(shared.ask("mine__look_read"))

    assert (view.name, view.of, view.enabled) == ("mine", "tenant", True)
    assert reply.status == "success"


async def test_a_server_saved_as_disabled_is_never_run(shared):
    started = shared.tmp_path / "started"
    touching = {"command": sys.executable, "args": ["-c", f"open({str(started)!r}, 'w')"]}
    ask = PutServer(tenant=shared.tenant, name="mine", config=ServerConfig(**touching), enabled=False)

    view = await shared.bus.ask(ask, ServerView)
    again = await put(shared, "mine", **program(shared))
    await put(shared, "other", url=shared.effects.url)
    await until_listed(shared, "other__look_read")

    assert (view.enabled, view.state, again.state) == (False, State.DISABLED, State.DISABLED)
    assert not started.exists()
    assert not {name for name in await names(shared) if name.startswith("mine")}


async def test_results_of_a_saved_server_are_strangers_words(shared):
    views = [
        await put(shared, "plain", url=shared.effects.url),
        await put(shared, "believed", url=shared.effects.url, trusted=True),
        await put(shared, "ours", url=shared.effects.url, untrusted=False),
    ]
    await until_listed(shared, "plain__look_read", "believed__look_read", "ours__look_read")
    listed = await shared.bus.ask(ListTools(tenant=shared.tenant, patterns=("*__look_read",)), ToolList)

    assert {tool.server: tool.untrusted for tool in listed.tools} == {
        "plain": True,
        "believed": False,
        "ours": False,
        "effects": False,
    }
    assert [view.config and view.config.untrusted for view in views] == [True, False, False]


@alone
async def test_a_saved_server_is_live_on_every_replica(platform):
    for _ in range(2):
        # So rarely that only the notice on the bus can bring a change to the other replica.
        await platform.registry(platform.effects.settings(), **ALLOWED, reread_every_s=600)
    replicas = [service for service in platform.running if service.name == "tool_registry"]

    await put(platform, "mine", url=platform.effects.url)

    async def everywhere() -> bool:
        return all([await _has(replica, platform.tenant) for replica in replicas])

    await until(everywhere, why="both replicas have the server")
    await platform.bus.ask(DeleteServer(tenant=platform.tenant, name="mine"), ServerDeleted)

    async def nowhere() -> bool:
        return not any([await _has(replica, platform.tenant) for replica in replicas])

    await until(nowhere, why="no replica has the server")


async def _has(replica, tenant: str) -> bool:
    running = next(part for part in replica.parts if hasattr(part, "_servers"))
    return any(name.startswith("mine__") for name in await running._servers.tools(tenant))


@alone
async def test_a_lost_notice_is_made_up_for(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED, reread_every_s=0.1)

    row = (platform.tenant, "mine", f'{{"url": "{platform.effects.url}"}}')
    await platform.ledger.execute(
        platform.tenant, "INSERT INTO servers (tenant, name, config) VALUES ($1, $2, $3::text::json)", *row
    )

    await until_listed(platform, "mine__look_read")


async def test_another_tenant_does_not_see_a_saved_server(shared):
    await put(shared, "mine", url=shared.effects.url)
    await until_listed(shared, "mine__pay_once")

    other = new_tenant()
    stranger = shared.ask("mine__pay_once").model_copy(update={"tenant": other, "key": f"{other}/j1/1/1"})
    reply = await shared.call(stranger)
    listed = await shared.bus.ask(ListServers(tenant=other), ServerList)

    assert reply.error is not None
    assert reply.error.code == "unknown_tool"
    assert not {name for name in await names(shared, other) if name.startswith("mine__")}
    assert [server.name for server in listed.servers] == ["builtin", "effects"]
    with pytest.raises(Reject, match="no server 'mine'"):
        await shared.bus.ask(GetServer(tenant=other, name="mine"), ServerView)


async def test_two_tenants_may_use_one_name(shared, shared_registry):
    other = shared_registry.as_tenant()
    await put(shared, "mine", url=shared.effects.url)
    await put(shared, "mine", tenant=other.tenant, url="http://127.0.0.1:9/mcp")

    await until_listed(shared, "mine__pay_once")

    assert "mine__pay_once" not in await names(shared, other.tenant)
    await other.delete_servers()


async def test_an_installations_name_is_refused(shared):
    for name in ("effects", "builtin"):
        with pytest.raises(Reject, match="a server of this installation") as refused:
            await put(shared, name, url=shared.effects.url)
        assert refused.value.status == 409


async def test_a_disabled_server_has_no_tools_and_keeps_its_configuration(shared):
    await put(shared, "mine", url=shared.effects.url)
    await until_listed(shared, "mine__pay_once")

    off = await shared.bus.ask(EnableServer(tenant=shared.tenant, name="mine", enabled=False), ServerView)
    without = await names(shared)
    await shared.bus.ask(EnableServer(tenant=shared.tenant, name="mine", enabled=True), ServerView)

    assert (off.state, off.config.url) == (State.DISABLED, shared.effects.url)
    assert "mine__pay_once" not in without
    await until_listed(shared, "mine__pay_once")


async def test_a_server_that_is_away_says_why(shared):
    await put(shared, "mine", url="http://127.0.0.1:9/mcp")

    async def is_away() -> bool:
        view = await shared.bus.ask(GetServer(tenant=shared.tenant, name="mine"), ServerView)
        return view.state is State.AWAY and "connect" in view.why.lower()

    await until(is_away, why="the server is shown as away")


async def test_a_call_ends_on_the_server_that_was_removed_meanwhile(shared):
    slow = await shared.server(delay_ms=600)
    await put(shared, "mine", url=slow.url, effects={"pay_once": "once"})
    ask = shared.ask("mine__pay_once")

    calling = asyncio.create_task(shared.call(ask))
    await until(lambda: slow.has_begun("pay_once", ask.key), why="the call has reached the tool")
    await shared.bus.ask(DeleteServer(tenant=shared.tenant, name="mine"), ServerDeleted)

    assert (await calling).status == "success"


@alone
async def test_servers_of_one_tenant_are_limited(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED, servers_per_tenant_max=1)
    await put(platform, "one", url=platform.effects.url)

    with pytest.raises(Reject, match="as many as it may have"):
        await put(platform, "two", url=platform.effects.url)
    await put(platform, "one", url=platform.effects.url, timeout_s=3)


@alone
async def test_programs_are_refused_until_they_are_allowed(platform):
    await platform.registry(platform.effects.settings(), keys=KEYS)

    with pytest.raises(Reject, match="WAYLINE_TOOL_REGISTRY_COMMANDS"):
        await put(platform, "mine", **program(platform))


@alone
async def test_only_the_exact_allowed_command_is_taken(platform):
    await platform.registry(platform.effects.settings(), commands=["npx"])

    for command in ("sh", "./npx", "/tmp/npx", "npx;sh", "npx -y", "$(npx)"):
        with pytest.raises(Reject, match=r"WAYLINE_TOOL_REGISTRY_COMMANDS allows npx"):
            await put(platform, "mine", command=command)


@alone
async def test_a_saved_program_no_longer_allowed_does_not_run(platform):
    before = await platform.registry(platform.effects.settings(), **ALLOWED)
    await put(platform, "mine", **program(platform))
    await until_listed(platform, "mine__environment")
    await before.stop()

    await platform.registry(platform.effects.settings(), keys=KEYS)

    async def shown() -> ServerView:
        return await platform.bus.ask(GetServer(tenant=platform.tenant, name="mine"), ServerView)

    async def is_refused() -> bool:
        return "WAYLINE_TOOL_REGISTRY_COMMANDS" in (await shown()).why

    await until(is_refused, why="the program is refused")
    assert (await shown()).state is State.AWAY
    assert "mine__environment" not in await names(platform)


async def test_a_variable_that_decides_what_runs_is_refused(shared):
    for name in ("PATH", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "path"):
        with pytest.raises(Reject, match=rf"{name} in `env`: .* allows .*variables: TOKEN"):
            await put(shared, "mine", **program(shared, env={name: "/tmp/evil"}))


async def test_arguments_reach_a_program_as_they_are(shared):
    hostile = ("; touch owned", "$(touch owned)", "`id`", "a\nb", "--", "*", "&& id")

    await put(shared, "mine", **program(shared, *hostile))
    await until_listed(shared, "mine__arguments")

    assert await content(shared, "mine__arguments") == "|".join(hostile)


async def test_a_program_sees_its_own_variables_and_none_of_ours(shared, monkeypatch):
    monkeypatch.setenv("WAYLINE_POSTGRES_DSN", "postgresql://secret")
    await put(shared, "mine", **program(shared, env={"TOKEN": "canary-token"}))
    await until_listed(shared, "mine__environment")

    seen = set((await content(shared, "mine__environment")).split())

    assert "TOKEN" in seen
    assert not {name for name in seen if name.startswith(("WAYLINE", "PYTEST"))}


async def test_a_program_runs_in_a_directory_of_its_own(shared):
    await put(shared, "mine", **program(shared))
    await until_listed(shared, "mine__directory")

    assert await content(shared, "mine__directory") == HOME


@alone
async def test_a_program_runs_under_limits(platform):
    await platform.registry(platform.effects.settings(), **ALLOWED, program_memory_mb=150, program_files_max=64)
    await put(platform, "mine", **program(platform))
    await until_listed(platform, "mine__limits")

    eaten = await platform.call(platform.ask("mine__eat", job="j2"))

    assert await content(platform, "mine__limits") == "64 0"
    assert eaten.status == "failed"


@pytest.mark.parametrize(("own", "holds"), [(32, "32 0"), (1_000, "64 0")])
async def test_a_program_has_its_own_limits_within_the_installations(shared, own: int, holds: str):
    await put(shared, "mine", **program(shared), limits={"files_max": own})
    await until_listed(shared, "mine__limits")

    assert await content(shared, "mine__limits") == holds


@alone
async def test_an_installations_program_has_the_limits_that_are_named(platform):
    limited = {"name": "ours", **program(platform), "limits": {"files_max": 32}}
    await platform.registry(platform.effects.settings(), limited)
    await until_listed(platform, "ours__limits")

    assert (await content(platform, "ours__limits")).startswith("32 ")


PRIVATE = """
127.0.0.1 localhost 127.1 0x7f.1 2130706433 [::1] [::ffff:127.0.0.1] [64:ff9b::7f00:1] [64:ff9b:1::1] [2002:7f00:1::]
169.254.169.254 10.0.0.1 192.168.0.1 172.16.0.1 100.64.0.1 0.0.0.0 [fe80::1] [fd00::1] [fec0::1] 224.0.0.1 192.0.0.8
""".split()


@alone
async def test_a_tenants_server_at_a_private_address_is_not_reached(platform):
    await platform.registry(platform.effects.settings(), keys=KEYS)
    for number, host in enumerate(PRIVATE):
        await put(platform, f"mine-{number}", url=f"http://{host}:{platform.effects.port}/mcp")

    async def are_refused() -> bool:
        listed = await platform.bus.ask(ListServers(tenant=platform.tenant), ServerList)
        own = [server for server in listed.servers if server.of == "tenant"]
        refusals = ("SERVER_ALLOWED_HOSTS", "neither a host name nor an IP address")
        return len(own) > 20 and all(any(text in one.why for text in refusals) for one in own)

    await until(are_refused, why="each address is refused")
    assert not {name for name in await names(platform) if name.startswith("mine")}


@alone
async def test_an_inside_host_is_reached_by_its_tenant_alone(platform):
    opened = f"{platform.tenant}@127.0.0.1:{platform.effects.port}"
    await platform.registry(platform.effects.settings(), server_allowed_hosts=[opened])
    url = platform.effects.url

    reports = [
        await platform.bus.ask(TryServer(tenant=tenant, config=ServerConfig(url=at)), ServerReport, timeout_s=30)
        for tenant, at in (
            (platform.tenant, url),
            (f"{platform.tenant}-x", url),
            (platform.tenant, "http://127.0.0.1:9/mcp"),
            (platform.tenant, url.replace("127.0.0.1", "127.0.0.2")),
        )
    ]

    assert [report.ok for report in reports] == [True, False, False, False]
    assert all("SERVER_ALLOWED_HOSTS" in report.why for report in reports[1:])


@alone
async def test_a_url_that_is_none_of_http_is_refused(platform):
    await platform.registry(platform.effects.settings(), keys=KEYS)

    for url in ("ftp://bank.example", "http://", "http://user:pass@bank.example/mcp", "bank"):
        with pytest.raises(Reject, match="`url` is"):
            await put(platform, "mine", url=url)


@alone
async def test_secrets_are_refused_without_a_key(platform):
    await platform.registry(platform.effects.settings(), server_allowed_hosts=["127.0.0.1:*"])

    with pytest.raises(Reject, match="WAYLINE_TOOL_REGISTRY_KEYS") as refused:
        await put(platform, "mine", url=platform.effects.url, headers={"X-Key": "canary-7"})
    await put(platform, "mine", url=platform.effects.url)

    assert "canary" not in str(refused.value)


async def test_a_masked_secret_keeps_the_stored_value(shared):
    saved = await put(shared, "mine", **program(shared, env={"TOKEN": "canary-token"}))

    assert saved.config is not None
    again = await put(shared, "mine", **(saved.config.model_dump() | {"env": {"TOKEN": MASK}, "timeout_s": 7}))
    await until_connected(shared, "mine")

    assert again.config is not None
    assert again.config.timeout_s == 7
    assert saved.config.model_dump(mode="json")["env"] == {"TOKEN": MASK}
    assert "TOKEN" in await content(shared, "mine__environment")
    with pytest.raises(Reject, match="none is stored"):
        await put(shared, "fresh", url=shared.effects.url, headers={"X-Key": MASK})
