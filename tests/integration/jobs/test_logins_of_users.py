"""Jobs of users: the tools of a server with logins of users are called with the login of the job's own user."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.mcp_servers import GetServer, ServerView
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import until
from wayline.testkit.mcp_servers import serving

from ..tool_registry.oauth_server import Protected
from ..tool_registry.test_logging_in import begin, finish, save
from .conftest import chatting, with_tools

KEY = f"k:{b64encode(bytes(32)).decode()}"
DEFAULT = {"tenant": "default"}


async def log_in(platform: Any, bank: Protected, user: str | None) -> None:
    page = await begin(platform, user_id=user, **DEFAULT)
    await finish(platform, await bank.open(page, account=user or "admin"), **DEFAULT)


async def test_a_jobs_tool_calls_carry_its_users_login(platform):
    pays = turns(Say(tools=(("bank__pay", {"amount": 1}),)), Say(text="done"))
    bank = Protected()
    async with ChatServer(pays) as chat, serving(bank) as bank.url:
        tools = with_tools(server_allowed_hosts=["127.0.0.1:*"], keys=KEY, probe_every_s=0.1)
        await platform.start("router", "executor", "tool_registry", executor=chatting(chat), tool_registry=tools)
        await save(platform, bank.url, credentials="user", **DEFAULT)
        for user in (None, "alice", "bob"):
            await log_in(platform, bank, user)

        async def connected() -> bool:
            shown = await platform.bus.ask(GetServer(name="bank", **DEFAULT), ServerView)
            return shown.state == "connected"

        await until(connected, why="the tenant's login lists the tools")
        for user in ("alice", "bob", "carol"):
            job = {"agent": "assistant", "input": "go", "job_id": f"job-{user}", "user_id": user}
            await platform.publish({**job, "options": {"model": "chat/m"}})
        ended = [await platform.wait_for(f"job-{user}") for user in ("alice", "bob", "carol")]
        [refused] = await platform.events_of("job-carol", e.ToolCompleted)

    assert [job.status for job in ended] == ["completed"] * 3
    assert sorted(account for account, method in bank.requests if method == "tools/call") == ["alice", "bob"]
    assert (refused.error.code, "login bank --user carol" in refused.error.message) == ("needs_authorization", True)
    [seen] = [body for _, body in chat.calls if "--user carol" in str(body)]
    assert "needs authorization" in str(seen)
