"""What a session's cache saves: the same twelve turns in a session, and each with all that was said in its input.

python -m tests.bench.sessions [--write docs/performance.md]

Whole jobs through a router and an executor; the bill is the simulator's, which keeps the providers' cache rules.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from wayline.executor.settings import Settings as ExecutorSettings
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked, Say, Simulator
from wayline.testkit import Platform
from wayline.testkit.platform import QUICK

from . import page
from .tool_platform import tool_platform

MODELS = ("anthropic/claude-sonnet-5-5", "openai/gpt-6.1-terra")
TURNS = 12
ANSWER = "The tide comes in and goes out again, as it did yesterday. " * 40
WAYS = {"in a session": True, "each with all that was said in its input": False}


@dataclass(frozen=True)
class Bill:
    """What the turns were charged for."""

    input: int
    read: int
    usd: Decimal

    def cells(self) -> list[str]:
        return [f"{self.input:,}", f"{self.read:,}", f"{self.read / self.input:.1%}", f"{self.usd:.4f}"]


async def play(platform: Platform, simulator: Simulator, model: str, *, in_session: bool) -> Bill:
    """Play the turns, and return what the provider charged for them."""
    before = len(simulator.bill.charges)
    prefix, transcript = f"{model.partition('/')[0]}-{'s' if in_session else 'p'}", ""
    for number in range(1, TURNS + 1):
        text = f"This is turn {number} of the talk."
        said = text if in_session else transcript + text
        transcript += f"{text}\n{ANSWER}\n"
        body = {"agent": "talker", "input": said, "job_id": f"{prefix}-{number}"}
        session = {"session_id": prefix} if in_session else {}
        await platform.publish({**body, **session, "options": {"model": model, "budget_usd": "5"}})
        job = await platform.wait_for(f"{prefix}-{number}")
        assert job.status == "completed", job.error
    charges = simulator.bill.charges[before:]
    used = [one.usage for one in charges]
    return Bill(
        sum(one.input for one in used),
        sum(one.cache_read for one in used),
        sum((one.usd for one in charges), Decimal(0)),
    )


async def measure(home: Path) -> dict[str, dict[str, Bill]]:
    """Return the bill of each way, by model."""

    def say(_: Asked) -> Say:
        return Say(text=ANSWER)

    async with Simulator(say) as simulator, tool_platform(home, limits=QUICK) as platform:
        anthropic, openai = simulator.url, simulator.openai_url
        router = RouterSettings(anthropic_base_url=anthropic, openai_base_url=openai)
        executor = ExecutorSettings(anthropic_base_url=anthropic, openai_base_url=openai)
        await platform.start("router", "tool_registry", "executor", router=router, executor=executor)
        await platform.put_agent("talker", instructions="You know the sea. " * 300, tools=(), max_output_tokens=1_500)
        return {
            model: {name: await play(platform, simulator, model, in_session=way) for name, way in WAYS.items()}
            for model in MODELS
        }


def report(billed: dict[str, dict[str, Bill]]) -> str:
    """Return one table a model."""
    return "\n".join(
        page.table(
            [model, "input tokens", "read", "cached", "USD"], [[name, *bill.cells()] for name, bill in bills.items()]
        )
        for model, bills in billed.items()
    )


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description="What a session's cache saves.")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this page")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        # Postgres runs as another user where we are root.
        home.chmod(0o711)
        text = report(asyncio.run(measure(home)))
    if asked.write:
        page.write(asked.write, "sessions", text)
    print(text)


if __name__ == "__main__":
    main()
