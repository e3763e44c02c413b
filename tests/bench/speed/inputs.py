"""What a job costs by the size of its input and in a session: by an agent as it is when nobody has set anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wayline.contracts.agents import Agent, AgentConfig, PutAgent

from .bench_platform import INSTRUCTIONS, BenchPlatform
from .load import OURS, TASK, Client, Work
from .measures import Sustained, slice_of

AGENT = "bench-default"
"""Its step limit follows how complex a job looks, so the input is read for it."""
INPUT_CHARS = (20, 1_000, 10_000)
CASE = (
    "Our customer in Lyon writes that the invoice export fails since Tuesday: compare the two logs below, find which "
    "of the three services is responsible, and write a short answer that we can send today. The first log shows 120 "
    "requests per second and an average latency of 340 ms, the second one only 80. "
)


@dataclass(frozen=True)
class Inputs:
    """One kind of input, and what its jobs cost."""

    kind: str
    sustained: Sustained


def text_of(chars: int) -> str:
    """Return an input of so many characters that ends with the task."""
    return (
        (CASE * (chars // len(CASE) + 1))[: chars - len(TASK) - 1] + "\n" + TASK if chars > len(TASK) else TASK[:chars]
    )


async def measure(platform: BenchPlatform, client: Client, sizes: Sequence[int] = INPUT_CHARS) -> list[Inputs]:
    """Keep jobs of each size in flight for some seconds, and then jobs of sessions, one after another in each."""
    config = AgentConfig(instructions=INSTRUCTIONS, tools=("get_current_time",))
    await platform.bus.ask(PutAgent(tenant="default", name=AGENT, config=config), Agent)
    kinds = {f"{chars:,} characters": Work(AGENT, text_of(chars)) for chars in sizes}
    kinds["in a session"] = Work(AGENT, text_of(INPUT_CHARS[0]), in_session=True)
    return [Inputs(kind, await slice_of(platform, client, OURS, work=work)) for kind, work in kinds.items()]
