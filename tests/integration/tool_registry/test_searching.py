"""Tools are searched over the bus: built-in ones, those of servers, and what a server says of itself."""

import sys

from wayline.contracts.mcp_servers import PutServer, ServerConfig, ServerView
from wayline.contracts.tools import FoundTools, SearchTools
from wayline.testkit import until

LEDGER = """
from mcp.server import MCPServer
server = MCPServer("ledger", instructions="Keeps the petty cash of the Zollikon branch.")

@server.tool()
def entries(month: str) -> str:
    return ""

server.run()
"""


async def search(platform, query: str, tenant: str | None = None, **more) -> FoundTools:
    ask = SearchTools(tenant=tenant or platform.tenant, query=query, **more)
    return await platform.bus.ask(ask, FoundTools)


async def test_a_search_finds_tools_by_their_words_and_servers(platform):
    await platform.registry(commands=[sys.executable], private_servers=True)
    file = platform.tmp_path / "ledger.py"
    file.write_text(LEDGER)
    config = ServerConfig(command=sys.executable, args=(str(file),))
    await platform.bus.ask(PutServer(tenant=platform.tenant, name="cash", config=config), ServerView)

    async def connected() -> bool:
        return bool((await search(platform, "petty cash in Zollikon")).tools)

    await until(connected, why="its server is connected")

    clock = await search(platform, "what time is it in Zurich?")
    cash = await search(platform, "petty cash in Zollikon")
    named = await search(platform, "petty cash in Zollikon", patterns=("bank__*",))
    theirs = await search(platform, "petty cash in Zollikon", tenant="others")

    assert clock.tools[0].tool.name == "get_current_time"
    assert [one.tool.name for one in cash.tools] == ["cash__entries"]
    assert (named.tools, named.disabled) == ((), ("cash__entries",))
    assert "cash__entries" not in {one.tool.name for one in theirs.tools}
