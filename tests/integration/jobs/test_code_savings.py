"""What programs save: fifty results of 200 tokens each, with and without them, on the provider's bill.

`pytest -s` on this file prints the figures.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server

from wayline.contracts.tools import RUN_CODE
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Say, rounds
from wayline.testkit import Platform
from wayline.testkit.mcp_servers import serving

from .conftest import until_listed, with_tools
from .four_models import CLAUDE, endpoints

NOTE = "The customer asked for delivery to the side door; the parcel was weighed, sealed and handed to the carrier. "
ORDERS = [
    {"order": n, "customer": f"c{n % 7}", "due": f"2026-11-{n % 28 + 1:02d}", "amount": 10 * n, "note": NOTE * 6}
    for n in range(50)
]
NOTHING = {"type": "object", "properties": {}}
NAMED = {"type": "object", "properties": {"customer": {"type": "string"}}, "required": ["customer"]}
PROGRAM = """
import asyncio
late = sorted((o for o in await shop__orders() if o["due"] > "2026-11-26"), key=lambda o: -o["amount"])
names = await asyncio.gather(*[shop__customer(customer=o["customer"]) for o in late])
[{"order": o["order"], "amount": o["amount"], "customer": c["name"]} for o, c in zip(late, names)]
"""
ANSWER = Say(text="Orders 27 and 26 are late.")
STANDARD = (
    Say(tools=(("shop__orders", {}),)),
    Say(tools=(("shop__customer", {"customer": "c6"}), ("shop__customer", {"customer": "c5"}))),
    ANSWER,
)
CODE = (Say(tools=((RUN_CODE, {"code": PROGRAM}),)), ANSWER)
INPUT_SHARE_MAX = 0.63
"""The reference: 37 % fewer tokens."""


async def offered(*_: object) -> types.ListToolsResult:
    tools = (("orders", "All orders.", NOTHING), ("customer", "One customer.", NAMED))
    return types.ListToolsResult(
        tools=[types.Tool(name=name, description=about, input_schema=schema) for name, about, schema in tools]
    )


async def found(_: object, called: types.CallToolRequestParams) -> types.CallToolResult:
    known = (
        ORDERS if called.name == "orders" else {"name": (called.arguments or {})["customer"].upper(), "tier": "gold"}
    )
    return types.CallToolResult(content=[types.TextContent(type="text", text=json.dumps(known))])


@dataclass
class Bill:
    tokens: int
    calls: int
    usd: Decimal
    shown: str


async def bill(platform: Platform, talk: tuple[Say, ...], agent: str) -> Bill:
    """Run one job and return what its provider billed."""
    simulator = await platform.simulate(rounds(*talk))
    settings = ExecutorSettings(**endpoints(simulator), result_tokens_max=20_000)
    await platform.start("executor", executor=settings)
    await platform.submit(agent, agent=agent, model=CLAUDE, budget_usd="1")
    ended = await platform.wait_for(agent)
    await platform.stop("executor")
    assert ended.status == "completed", ended.error
    used = [charge.usage for charge in simulator.bill.charges]
    usd = sum((charge.usd for charge in simulator.bill.charges), Decimal(0))
    shown = json.dumps(simulator.requests[-1].body["messages"])
    return Bill(sum(one.total for one in used), len(used), usd, shown)


async def test_a_program_saves_tokens_and_rounds_on_fifty_results(platform: Platform):
    server: Server[Any] = Server("shop", on_list_tools=offered, on_call_tool=found)
    async with serving(server) as url:
        shop = {"name": "shop", "url": url, "effects": {"orders": "read", "customer": "read"}}
        registry = with_tools(shop, answer_within_s=4, available_within_s=10)
        simulator = await platform.simulate()
        await platform.start(
            "router", "tool_registry", router=RouterSettings(**endpoints(simulator)), tool_registry=registry
        )
        await until_listed(platform, "shop__orders")
        for agent, code in (("standard", False), ("code", True)):
            await platform.put_agent(agent, instructions="Answer.", tools=("shop__orders", "shop__customer"), code=code)

        standard = await bill(platform, STANDARD, "standard")
        code = await bill(platform, CODE, "code")

    print(f"\nstandard: {standard.tokens} tokens, {standard.calls} model calls, ${standard.usd}")
    print(f"code:     {code.tokens} tokens, {code.calls} model calls, ${code.usd}")
    assert "side door" in standard.shown
    assert "side door" not in code.shown, "what a program reads is not shown"
    assert '\\"order\\":27' in code.shown.replace("\\\\", "\\").replace(" ", "")
    assert code.tokens <= INPUT_SHARE_MAX * standard.tokens
    assert (standard.calls, code.calls) == (3, 2)
