"""Jobs that meet every accident a call can have, each by a draw of a seed: what happens to them is on the bill."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import cycle

from nats.aio.msg import Msg

from wayline.chassis import Failpoint
from wayline.contracts.agents import Agent, AgentConfig, PutAgent, Routing
from wayline.contracts.budgets import Budget, BudgetConfig, PutBudget
from wayline.contracts.events import TERMINAL_TYPES, JobClaimed
from wayline.contracts.jobs import Cancel, JobOptions, SubmitJob
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.contracts.tools import ListTools, ToolList
from wayline.journal import read_record
from wayline.simulator import Asked, Facts, Fault, Say
from wayline.simulator import Rates as BilledRates
from wayline.testkit import until
from wayline.testkit.processes import ServiceProcess

from .platform import CLOCK, ONCE, TENANT, FaultPlatform

CLAUDE = ("anthropic/claude-haiku-5-5", "anthropic/claude-sonnet-5-5", "anthropic/claude-opus-5-5")
GPT = ("openai/gpt-6-luna", "openai/gpt-6.1-terra", "openai/gpt-6-sol")
METERED = tuple(f"metered-{n}" for n in range(6))
CHAT = tuple(f"chat/{name}" for name in METERED)
FAMILIES = (CLAUDE, GPT, CHAT)
SORTER = "sorter"
DOOM = "doom"
EXECUTORS = 2
ROUNDS_MAX = 4
OUTPUT_MAX = 300
TENANT_BUDGET = Decimal(1_000)
SMALL_BUDGET = Decimal("0.004")
"""A job's budget that ends some of them half-way."""
CLASSIFIED = 0.3
"""Of all jobs."""
PAYING = 0.3
"""Of all jobs with a second round."""
LATE = 10
"""The last jobs, which are all classified."""
LABELS = ("negotiation", "contract review", "drafting", "sentiment", "none", "I cannot say")
WORDS = "the tide comes in and goes out again, as it did yesterday and as it will tomorrow; "
DEADLY = (
    Failpoint.EXECUTOR_MODEL_AFTER,  # the whole answer came, and nobody wrote it down
    Failpoint.EXECUTOR_INTENT_AFTER,  # written down as begun, and never sent
    Failpoint.EXECUTOR_RESULT_AFTER,
    Failpoint.EXECUTOR_END_AFTER,  # ended, and not settled
    Failpoint.EXECUTOR_SETTLE_AFTER,  # settled, and not acked
)
DEADLY_AFTER = 15
"""So many times a failpoint is passed at least: later it is one of many jobs that are hit."""

Draw = random.Random
MakeFault = Callable[[Draw], Fault]
FAULTS: tuple[tuple[float, MakeFault], ...] = (
    (0.06, lambda draw: Fault(cut_at_byte=draw.randrange(4_000))),
    (0.05, lambda draw: Fault(overload_after_events=draw.randrange(1, 12))),
    (0.02, lambda _: Fault(error="overloaded")),
    (0.02, lambda _: Fault(error="server_error")),
    (0.03, lambda _: Fault(error="rate_limited", retry_after_s=1)),
    (0.02, lambda _: Fault(error="rate_limited")),
    (0.01, lambda _: Fault(error="spend_cap")),
    (0.02, lambda _: Fault(no_usage=True)),
    (0.02, lambda _: Fault(malformed_arguments=True)),
    (0.03, lambda draw: Fault(latency_s=draw.random() / 5)),
    (0.05, lambda draw: Fault(drip_bytes=draw.randrange(20, 200), drip_pause_s=0.002)),
    (0.03, lambda _: Fault(fails_at_end=True)),
)
"""Shares of all requests; the rest goes well."""


@dataclass(frozen=True)
class JobPlan:
    """What a job is going to meet."""

    model: str
    rounds: int
    strikes_in: int
    strike: str = ""
    """`cancel`, `kill` or `stop`, in the middle of that round's answer; `doom`: in each try of it, a kill."""
    budget_usd: Decimal | None = None
    classified: bool = False
    """Whether a flash model is asked first what type of task it is; a cancel then comes in the middle of that."""
    pays: bool = False
    """Whether its first round calls a paid tool beside the free one."""


class StrikeOnWait(asyncio.Event):
    """Never set: a stream that waits for it says so first, and waits until somebody takes it away."""

    def __init__(self, strike: Callable[[], None]) -> None:
        super().__init__()
        self._strike = strike

    async def wait(self) -> bool:  # type: ignore[override]
        self._strike()
        return await super().wait()


@dataclass
class Accidents:
    """One run: its jobs, and whoever is killed meanwhile."""

    platform: FaultPlatform
    seed: int
    jobs: int
    strikes: dict[str, int]
    """How many jobs are cancelled, and how many have their executor killed or stopped, in the middle of a stream."""
    deaths: int
    """Executors that die at a failpoint."""
    faults: tuple[tuple[float, MakeFault], ...] = FAULTS
    plans: dict[str, JobPlan] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    killed: list[ServiceProcess] = field(default_factory=list)
    _struck: set[str] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        draw = random.Random(self.seed)
        struck = [strike for strike, n in self.strikes.items() for _ in range(n)]
        names = [f"j{n}" for n in range(self.jobs)]
        strikes = dict(zip(draw.sample(names, len(struck)), struck, strict=True))
        for n, name in enumerate(names):
            rounds = draw.randrange(1, ROUNDS_MAX + 1)
            self.plans[name] = JobPlan(
                model=draw.choice(draw.choice(FAMILIES)),
                rounds=rounds,
                strikes_in=draw.randrange(rounds),
                strike=strikes.get(name, ""),
                budget_usd=SMALL_BUDGET if name not in strikes and draw.random() < 0.08 else None,
                # The last ones also: the first executors are gone by then, and some answers arrive.
                classified=n >= self.jobs - LATE
                or random.Random(f"{self.seed}:{name}:classified").random() < CLASSIFIED,
                pays=rounds > 1 and random.Random(f"{self.seed}:{name}:pays").random() < PAYING,
            )
        self.left = set(names)
        self._failpoints = iter(zip(cycle(DEADLY), range(self.deaths), strict=False))
        self.platform.provider.script = self._say
        self.platform.provider.faults = self._fault

    def _fault(self, asked: Asked) -> Fault:
        draw = random.Random(f"{self.seed}:{asked.attempt}")
        at = draw.random()
        for share, fault in self.faults:
            if at < share:
                return fault(draw)
            at -= share
        return Fault()

    def _say(self, asked: Asked) -> Say:
        job_id = asked.attempt.split("/")[1]
        plan, done = self.plans[job_id], sum(bool(turn.calls) for turn in asked.turns)
        draw = random.Random(f"{self.seed}:{asked.attempt}:words")
        if "/0/a" in asked.attempt:
            return self._classify(job_id, draw.choice(LABELS))
        text = WORDS * draw.randrange(1, 12)
        tools = ((CLOCK, {}),) if done + 1 < plan.rounds else ()
        if plan.pays and done == 0:
            tools = ((ONCE, {}), *tools)
        if plan.strike and done == plan.strikes_in and (plan.strike == DOOM or job_id not in self._struck):
            held = StrikeOnWait(lambda: self._strike(job_id, plan.strike))
            return Say(text=text, tools=tools, fault=Fault(hold=held, hold_at="middle"))
        return Say(text=text, tools=tools)

    def _classify(self, job_id: str, label: str) -> Say:
        # Most jobs ask at the same time: one kill would take the answers of all of them.
        if self.plans[job_id].strike != "cancel":
            return Say(text=label)
        held = StrikeOnWait(lambda: self._strike(job_id, "cancel"))
        return Say(text=label, fault=Fault(hold=held, hold_at="middle"))

    def _strike(self, job_id: str, strike: str) -> None:
        self._struck.add(job_id)
        task = asyncio.ensure_future(self._do(job_id, strike))
        self._tasks.add(task)

    async def _do(self, job_id: str, strike: str) -> None:
        if strike == "cancel":
            await self.platform.signal(job_id, Cancel(by="a test"))
            return
        records = await self.platform.records(job_id)
        claims = [event for record in records for event in read_record(record.data) if isinstance(event, JobClaimed)]
        pid = int(claims[-1].executor.rpartition("-")[2])
        victim = next(process for process in self.platform.fleet.processes if process.pid == pid)
        self.killed.append(victim)
        if strike in {"kill", DOOM}:
            return victim.kill()
        # Asked twice, it ends at once, and says of every call how much it had heard. Two of the same might come as one.
        victim.drain()
        victim.tell(signal.SIGINT)

    def _replace(self) -> None:
        """Have as many executors as there should be; each new one may die at a failpoint of its own."""
        fleet = self.platform.fleet
        for _ in range(EXECUTORS - len(fleet.running("executor"))):
            failpoint, n = next(self._failpoints, (None, 0))
            fleet.spawn("executor", failpoint, nth=DEADLY_AFTER + 7 * n % 23)

    async def run(self, *, within: float) -> None:
        """Submit every job and see it end, whatever happens to executors meanwhile."""

        async def heard(message: Msg) -> None:
            events = read_record(await self.platform.bus.body(message))
            self.left.difference_update(event.job_id for event in events if event.type in TERMINAL_TYPES)

        heard_ends = await self.platform.bus.nc.subscribe("live.*.*", cb=heard)
        self._replace()
        # Alone: whoever is held beside a doomed job dies as often.
        doomed = [name for name, plan in self.plans.items() if plan.strike == DOOM]
        names = [name for name in self.plans if name not in doomed]
        # Most accidents befall the first ones: the last ones meet executors that live long enough to answer.
        for some in (doomed, names[:-LATE], names[-LATE:]):
            for name in some:
                await self._submit(name)

            def over(some: list[str] = some) -> bool:
                self._replace()
                return self.left.isdisjoint(some)

            await until(over, within=within, why=f"{len(some)} jobs end")
        await heard_ends.unsubscribe()
        await asyncio.gather(*self._tasks)

    async def _submit(self, name: str) -> None:
        plan = self.plans[name]
        options = JobOptions(budget_usd=plan.budget_usd, max_steps=2 * ROUNDS_MAX, max_output_tokens=OUTPUT_MAX)
        agent = SORTER if plan.classified else agent_of(plan.model)
        job = SubmitJob(tenant=TENANT, agent=agent, input=f"Tell me of {name}.", job_id=name, options=options)
        await self.platform.bus.publish(job, msg_id=name)

    @property
    def deaths_seen(self) -> int:
        return sum(process.killed for process in self.platform.fleet.processes if process.name == "executor")


def agent_of(model: str) -> str:
    return model.replace("/", "-").replace(".", "-")


def _agents() -> Iterator[tuple[str, AgentConfig]]:
    for at, family in enumerate(FAMILIES):
        for n, model in enumerate(family):
            fallbacks = tuple(other[n % len(other)] for other in (FAMILIES[at - 1], FAMILIES[at - 2]))
            routing = Routing(mode="locked", primary=model, fallbacks=fallbacks)
            yield agent_of(model), _config(routing)

    # No slot has the same model as another: an answer changes the price of all that follows.
    slots = Routing(fast=CLAUDE[0], primary=GPT[1], escalation=CHAT[2], fallbacks=(GPT[0], CLAUDE[1]))
    yield SORTER, _config(slots, classify=True)


def _config(routing: Routing, *, classify: bool = False) -> AgentConfig:
    tools = (CLOCK, ONCE)
    return AgentConfig(instructions="Tell what you know.", routing=routing, tools=tools, ask="never", classify=classify)


def _rates(n: int) -> tuple[Decimal, Decimal]:
    """Prices of the n-th metered model: odd enough for every call to be rounded."""
    return Decimal(f"0.{3_217 + n}"), Decimal(f"1.{9_031 + 7 * n}")


def metered() -> dict[str, Facts]:
    found = {}
    for n, name in enumerate(METERED):
        given, made = _rates(n)
        found[name] = Facts(name=name, provider="local", rates=BilledRates(input=given, output=made))
    return found


async def set_up(platform: FaultPlatform) -> None:
    """The models, the paid tool, the agents and the budget of a run with accidents."""
    for n, name in enumerate(METERED):
        given, made = _rates(n)
        prices = Prices(rates=Rates(input=given, output=made))
        card = ModelCard(provider="chat", model=name, tier="standard", prices=prices)
        await platform.bus.ask(PutModel(tenant=TENANT, card=card), ModelCard)
    for name, config in _agents():
        await platform.bus.ask(PutAgent(tenant=TENANT, name=name, config=config), Agent)

    async def listed() -> bool:
        tools = (await platform.bus.ask(ListTools(tenant=TENANT, patterns=(ONCE,)), ToolList)).tools
        return any(tool.charge is not None for tool in tools)

    await until(listed, why="the paid tool is listed")
    config = BudgetConfig(limit_usd=TENANT_BUDGET, window="total")
    await platform.bus.ask(PutBudget(tenant=TENANT, name="cap", config=config), Budget)
