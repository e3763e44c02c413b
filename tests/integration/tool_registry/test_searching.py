"""Tools are searched over the bus: built-in ones, those of servers, and what a server says of itself."""

import sys

from wayline.contracts.mcp_servers import EnableServer, GetServer, PutServer, ServerView, State
from wayline.contracts.searched_tools import FoundTools, SearchTools
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.tenant_settings import SWITCHED_TOOLS
from wayline.testkit import until
from wayline.testkit.plain_mcp import plain_program

LEDGER = plain_program("""
server = MCPServer("ledger", instructions="Keeps the petty cash of the Zollikon branch.")

@server.tool()
def entries(month: str) -> str:
    return ""

server.run()
""")


async def search(platform, query: str, tenant: str | None = None, **more) -> FoundTools:
    ask = SearchTools(tenant=tenant or platform.tenant, query=query, **more)
    return await platform.bus.ask(ask, FoundTools)


async def test_a_search_finds_tools_by_their_words_and_servers(platform):
    await platform.registry(commands=[sys.executable], server_allowed_hosts=["127.0.0.1:*"])
    file = platform.tmp_path / "ledger.py"
    file.write_text(LEDGER)
    config = ServerConfig(command=sys.executable, args=(str(file),))
    await platform.bus.ask(PutServer(tenant=platform.tenant, name="book", config=config), ServerView)

    async def connected() -> bool:
        return bool((await search(platform, "petty cash in Zollikon")).tools)

    await until(connected, why="its server is connected")

    clock = await search(platform, "what time is it in Zurich?")
    cash = await search(platform, "petty cash in Zollikon")
    web = await search(platform, "search the web for news")
    named = await search(platform, "petty cash in Zollikon", patterns=("bank__*",))
    theirs = await search(platform, "petty cash in Zollikon", tenant="others")

    assert clock.tools[0].tool.name == "get_current_time"
    assert [one.tool.name for one in cash.tools] == ["book__entries"]
    assert (named.tools, named.disabled) == ((), ("book__entries",))
    assert named.unusable[0].how == "add book__entries to the `tools` of the agent (`wayline agents put`)"
    assert "WAYLINE_TOOL_REGISTRY_WEB_SEARCH_PROVIDER" in {one.name: one.how for one in web.unusable}["web_search"]
    assert "book__entries" not in {one.tool.name for one in theirs.tools}


async def test_an_unset_and_switched_off_tool_names_both_remedies(platform):
    await platform.registry()

    off = await search(platform, "search the web", patterns=("web_*",), off=SWITCHED_TOOLS["web_search"])
    on = await search(platform, "search the web", patterns=("web_*",))

    [both], [one] = ([tool for tool in found.unusable if tool.name == "web_search"] for found in (off, on))
    assert (both.why, both.how) == (
        f"{one.why}, and the switch `web_search` is off",
        f"{one.how}; set `web_search` to true in the agent, or `wayline settings set web_search=on` where it leaves "
        "that out",
    )


async def test_a_disabled_servers_tool_is_named_with_what_enables_it(platform):
    await platform.registry(commands=[sys.executable])
    file = platform.tmp_path / "ledger.py"
    file.write_text(LEDGER)
    config = ServerConfig(command=sys.executable, args=(str(file),))
    await platform.bus.ask(PutServer(tenant=platform.tenant, name="cash", config=config), ServerView)

    async def connected() -> bool:
        view = await platform.bus.ask(GetServer(tenant=platform.tenant, name="cash"), ServerView)
        return view.state is State.CONNECTED

    await until(connected, why="its server is connected")
    await platform.bus.ask(EnableServer(tenant=platform.tenant, name="cash", enabled=False), ServerView)

    found = await search(platform, "entries of the month")
    theirs = await search(platform, "entries of the month", tenant="others")

    assert [(one.name, one.how) for one in found.unusable][:1] == [("cash__entries", "`wayline mcp enable cash`")]
    assert "cash__entries" not in {one.tool.name for one in found.tools}
    assert "cash__entries" not in {one.name for one in theirs.unusable}


MANY = plain_program("""
server = MCPServer("crm")

def send_invoice(customer: str) -> str:
    "Send an invoice to a customer."
    return ""

for number in range(120):
    server.add_tool(send_invoice, name=f"send_invoice_{number:03}")

@server.tool()
def bill(buyer: str) -> str:
    "Make a paper bill for a buyer, who is sent an invoice later, with much more text about it."
    return ""

server.run()
""")


async def test_an_allowed_tool_is_found_among_many_forbidden_ones(platform):
    await platform.registry(commands=[sys.executable], server_allowed_hosts=["127.0.0.1:*"])
    file = platform.tmp_path / "many.py"
    file.write_text(MANY)
    config = ServerConfig(command=sys.executable, args=(str(file),))
    await platform.bus.ask(PutServer(tenant=platform.tenant, name="crm", config=config), ServerView)

    async def connected() -> bool:
        return (await search(platform, "invoice")).searched > 120

    await until(connected, why="its server is connected")

    found = await search(platform, "send an invoice to the customer", patterns=("crm__bill",))

    assert [one.tool.name for one in found.tools] == ["crm__bill"]
    assert found.disabled == ("crm__send_invoice_000", "crm__send_invoice_001", "crm__send_invoice_002")
