"""Many calls at once over many servers, one of which hangs: the others end all of theirs meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from mcp.server import MCPServer

from wayline.testkit import until
from wayline.testkit.mcp_servers import serving

SERVERS = 10
CALLS = 100
EACH = CALLS // SERVERS


class Library:
    """A server that answers at once, or once it may."""

    def __init__(self, *, hangs: bool) -> None:
        self.begun = 0
        self.may_answer = asyncio.Event()
        if not hangs:
            self.may_answer.set()
        self.mcp = MCPServer("library")
        self.mcp.tool(structured_output=False)(self.look)

    async def look(self, number: str) -> str:
        """Look a number up."""
        self.begun += 1
        await self.may_answer.wait()
        return f"row {number}"


async def test_nine_servers_answer_every_call_while_the_tenth_hangs(platform):
    libraries = [Library(hangs=n == SERVERS - 1) for n in range(SERVERS)]
    hanging = libraries[-1]
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(serving(library.mcp)) for library in libraries]
        await platform.registry(
            *({"name": f"s{n}", "url": url, "effects": {"look": "read"}} for n, url in enumerate(urls))
        )
        # Each caller takes the servers in turn, as the bench of proxied calls does.
        calls = {
            n: asyncio.create_task(
                platform.call(platform.ask(f"s{n % SERVERS}__look", {"number": str(n)}, job=f"call-{n}"))
            )
            for n in range(CALLS)
        }
        stuck = [task for n, task in calls.items() if n % SERVERS == SERVERS - 1]
        others = [task for task in calls.values() if task not in stuck]

        answers = await asyncio.gather(*others)
        await until(lambda: hanging.begun >= EACH, why="the tenth server has all of its calls")
        ended_before = [task for task in stuck if task.done()]
        hanging.may_answer.set()
        late = await asyncio.gather(*stuck)

    assert len(answers) == CALLS - EACH
    assert {reply.status for reply in [*answers, *late]} == {"success"}
    assert ended_before == []
    # A read whose reply a busy caller missed runs again.
    assert min(library.begun for library in libraries) >= EACH
