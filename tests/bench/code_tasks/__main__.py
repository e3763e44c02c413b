"""What programs save: scripted tasks of an agent, each with calls of tools one by one and with one program.

    python -m tests.bench.code_tasks [--write docs/performance.md]

The model is scripted to do the sensible thing in either way; tokens and dollars are the simulated provider's bill. Tool
results are shown whole in both ways.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from wayline.chassis.stream_limits import Limits
from wayline.contracts.errors import Retry
from wayline.contracts.tools import RUN_CODE, ListTools, ToolList
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked, Say, Script, Simulator, rounds
from wayline.testkit import Platform, until
from wayline.tool_registry.settings import Settings as RegistrySettings

from .. import page
from ..tool_platform import tool_platform
from . import shop_server
from .shop_server import PAGES

MODEL = "anthropic/claude-sonnet-5-5"
ANSWER = "Here is what you asked for, in one sentence with the numbers that matter."


def call(tool: str, key: str | None = None) -> tuple[str, dict[str, str]]:
    return f"shop__{tool}", {} if key is None else {"key": key}


@dataclass(frozen=True)
class Task:
    """One task: the calls of each round without programs, and the program that does the same."""

    name: str
    calls: tuple[tuple[tuple[str, dict[str, str]], ...], ...]
    program: str

    def standard(self) -> tuple[Say, ...]:
        return (*(Say(tools=one) for one in self.calls), Say(text=ANSWER))

    def code(self) -> tuple[Say, ...]:
        return (Say(tools=((RUN_CODE, {"code": self.program}),)), Say(text=ANSWER))


LATE = [order for order in shop_server.ORDERS if order["due"] > "2026-11-24"]
CUSTOMERS = sorted({order["customer"] for order in LATE})
DEAREST = [product["product"] for product in sorted(shop_server.PRODUCTS, key=lambda one: -one["price"])[:12]]

TASKS = (
    Task("one small result", ((call("depot", "d5"),),), '(await shop__depot(key="d5"))["phone"]'),
    Task(
        "filter 50 records",
        ((call("orders"),),),
        '[o["order"] for o in await shop__orders() if o["due"] > "2026-11-24"]',
    ),
    Task(
        "sort 60 records",
        ((call("products"),),),
        '[p["name"] for p in sorted(await shop__products(), key=lambda p: -p["price"])[:5]]',
    ),
    Task(
        "join 50 records with what they name",
        ((call("orders"),), tuple(call("customer", key) for key in CUSTOMERS)),
        """
import asyncio
late = [o for o in await shop__orders() if o["due"] > "2026-11-24"]
keys = sorted({o["customer"] for o in late})
names = dict(zip(keys, await asyncio.gather(*[shop__customer(key=key) for key in keys])))
[{"order": o["order"], "customer": names[o["customer"]]["name"]} for o in late]
""",
    ),
    Task(
        "one call for each of 12 inputs",
        ((call("products"),), tuple(call("stock", key) for key in DEAREST)),
        """
import asyncio
dear = sorted(await shop__products(), key=lambda p: -p["price"])[:12]
stock = await asyncio.gather(*[shop__stock(key=p["product"]) for p in dear])
[s["product"] for s in stock if not s["left"]]
""",
    ),
    Task(
        "pipeline of 4 calls",
        ((call("order", "7"),), (call("parcel", "k7"),), (call("depot", "d5"),), (call("customer", "c3"),)),
        """
order = await shop__order(key="7")
depot = await shop__depot(key=(await shop__parcel(key=order["parcel"]))["depot"])
{"phone": depot["phone"], "city": (await shop__customer(key=order["customer"]))["city"]}
""",
    ),
    Task(
        f"{PAGES} pages of a log",
        tuple((call("visits", str(n)),) for n in range(PAGES)),
        f"""
import asyncio
pages = await asyncio.gather(*[shop__visits(key=str(n)) for n in range({PAGES})])
slow = [v["path"] for page in pages for v in page if v["ms"] > 390]
{{path: slow.count(path) for path in sorted(set(slow))}}
""",
    ),
)


@dataclass(frozen=True)
class Bill:
    """What a job's provider billed."""

    tokens: int
    calls: int
    usd: Decimal


class Bench:
    """An installation whose two agents differ in `code` alone."""

    def __init__(self, platform: Platform, simulator: Simulator) -> None:
        self.platform = platform
        self.simulator = simulator
        self.talk: Script = rounds(Say(text=ANSWER))

    async def start(self) -> None:
        urls = {
            "anthropic_base_url": self.simulator.url,
            "openai_base_url": self.simulator.openai_url,
            "chat_base_url": self.simulator.openai_url,
        }
        shop = {"name": "shop", "command": sys.executable, "args": [shop_server.__file__]}
        shop["effects"] = dict.fromkeys(shop_server.ANSWERS, "read")
        await self.platform.start(
            "router",
            "tool_registry",
            "executor",
            router=RouterSettings.model_validate(urls),
            tool_registry=RegistrySettings.model_validate({"servers": [shop]}),
            executor=ExecutorSettings.model_validate({**urls, "result_tokens_max": 20_000}),
        )
        await until(self._listed, within=60, why="the shop's tools are listed")
        for agent, code in (("standard", False), ("code", True)):
            await self.platform.put_agent(agent, instructions="Answer.", tools=("shop__*",), code=code, max_steps=10)

    async def _listed(self) -> bool:
        try:
            found = await self.platform.bus.ask(ListTools(tenant="default"), ToolList)
        except Retry:
            return False
        return "shop__orders" in {tool.name for tool in found.tools}

    async def bill(self, task: Task, agent: str) -> Bill:
        """Run a task and return what it cost."""
        self.talk = rounds(*(task.code() if agent == "code" else task.standard()))
        before = len(self.simulator.bill.charges)
        job_id = f"{agent}-{TASKS.index(task)}"
        await self.platform.submit(job_id, task.name, agent=agent, model=MODEL, budget_usd="1")
        ended = await self.platform.wait_for(job_id)
        told = str(self.simulator.requests[-1].body["messages"])
        if ended.answer != ANSWER or "The program failed" in told:
            raise SystemExit(f"{task.name}, {agent}: {ended.error or told[-2_000:]}")
        charges = self.simulator.bill.charges[before:]
        usd = sum((charge.usd for charge in charges), Decimal(0))
        return Bill(sum(charge.usage.total for charge in charges), len(charges), usd)


async def measure() -> list[tuple[Task, Bill, Bill]]:
    """Return every task with its bill without and with a program."""
    bench: list[Bench] = []

    def script(asked: Asked) -> Say | Awaitable[Say]:
        return bench[0].talk(asked)

    with tempfile.TemporaryDirectory() as home:
        async with tool_platform(Path(home), limits=Limits(memory=True)) as platform, Simulator(script) as simulator:
            bench.append(Bench(platform, simulator))
            await bench[0].start()
            return [(task, await bench[0].bill(task, "standard"), await bench[0].bill(task, "code")) for task in TASKS]


def report(found: Sequence[tuple[Task, Bill, Bill]], load_before: float) -> str:
    head = ["task", "tokens", "with a program", "model calls", "with", "USD", "with", "tokens saved"]
    lines = [_line(task.name, standard, code) for task, standard, code in found]
    lines.append(_line("all", _sum([one for _, one, _ in found]), _sum([one for _, _, one in found])))
    return f"{page.machine(load_before)}\n\n{page.table(head, lines)}"


def _sum(bills: Sequence[Bill]) -> Bill:
    usd = sum((one.usd for one in bills), Decimal(0))
    return Bill(sum(one.tokens for one in bills), sum(one.calls for one in bills), usd)


def _line(name: str, standard: Bill, code: Bill) -> list[str]:
    return [
        name,
        f"{standard.tokens:,}",
        f"{code.tokens:,}",
        str(standard.calls),
        str(code.calls),
        f"{standard.usd:.4f}",
        f"{code.usd:.4f}",
        f"{1 - code.tokens / standard.tokens:.0%}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    asked = parser.parse_args()
    load_before = os.getloadavg()[0]
    text = report(asyncio.run(measure()), load_before)
    if asked.write:
        page.write(asked.write, "code_tasks", text)
    print(text)


if __name__ == "__main__":
    main()
