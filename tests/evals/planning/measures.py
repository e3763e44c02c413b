"""Plans of goals whose right order people wrote down: by words alone, and with a model that says what it knows."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from zlib import crc32

from tests.bench.tool_platform import tool_platform
from tests.unit.executor.logs import Log
from tests.unit.executor.planned import PLANNER, offline, played, scripted
from wayline.chassis.stream_limits import Limits
from wayline.contracts import events as e
from wayline.contracts.tools import TASK_TOOLS
from wayline.executor.decide.actions import Complete
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.journal import fold
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform

from ..shared import REPOSITORY, rows

SET = ("plan-worfbench-dev", "graphs.jsonl.gz")
SHOP = REPOSITORY / "tests/unit/planning/coffee_shop.json"
STEPS_MAX = 10
SECONDS_MAX = 30.0
SERVICES = ("router", "tool_registry", "retrieval", "executor")
SAMPLE_EVERY = 60
PHRASES = (
    "After {}.",
    "Depends on {}.",
    "Blocked by {}.",
    "Needs {}.",
    "Requires {}.",
    "Once {} is done.",
    "Waits for {}.",
    "As soon as {} is finished.",
    "Can only begin when {} is complete.",
    "Builds on {}.",
    "Prerequisite: {}.",
    "Do not start before {}.",
)
"""How the scripted model says of a task what comes before it."""

Edge = tuple[str, str]


@dataclass(frozen=True)
class Goal:
    """What is to be done, and which task needs which by those who wrote it down."""

    id: str
    source: str
    tasks: tuple[dict[str, Any], ...]
    gold: frozenset[Edge]

    @property
    def input(self) -> str:
        return json.dumps({"outcome": self.id, "tasks": self.tasks})

    def told(self) -> list[dict[str, Any]]:
        """Return the tasks with a sentence for each dependency, by number or by name, as a model would write them."""
        named = {task["id"]: task["name"] for task in self.tasks}
        told = {task["id"]: [task.get("text", "")] for task in self.tasks}
        for task, needs in sorted(self.gold):
            dice = crc32(f"{self.id} {task} {needs}".encode())
            by_name = dice % 2 and sum(name == named[needs] for name in named.values()) == 1
            other = f'"{named[needs].rstrip(".")}"' if by_name else f"task {needs}"
            told[task].append(PHRASES[dice // 2 % len(PHRASES)].format(other))
        return [{**task, "text": "\n".join(told[task["id"]]).strip()} for task in self.tasks]

    def answer(self) -> str:
        order = [{"id": task["id"], "reason": "as it is listed"} for task in self.tasks]
        return json.dumps({"prioritized_tasks": order, "reasoning": "in the order of the list"})


@dataclass
class Measured:
    """What became of plans."""

    plans: int = 0
    valid: int = 0
    whole: int = 0
    """Of the right form, with every task, within the steps."""
    in_order: int = 0
    """Whose tools were called in their order."""
    right: int = 0
    gold: int = 0
    found: int = 0
    seconds: list[float] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return self.right / self.gold if self.gold else 1.0

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    def add(self, goal: Goal, plan: Plan) -> None:
        """Count one plan."""
        edges = {(one["task"], one["needs"]) for one in plan.value["dependencies"]}
        self.plans += 1
        self.valid += is_valid(plan.value)
        self.whole += len(plan.value["prioritized_tasks"]) == len(goal.tasks) and plan.steps <= STEPS_MAX
        self.in_order += is_in_order(plan.tools)
        self.right += len(edges & goal.gold)
        self.gold += len(goal.gold)
        self.found += len(edges)
        self.seconds.append(plan.seconds)

    @property
    def slowest_s(self) -> float:
        return max(self.seconds, default=0.0)

    @property
    def usual_s(self) -> float:
        return median(self.seconds) if self.seconds else 0.0


class Plan(NamedTuple):
    """A plan, and how its job came to it."""

    value: dict[str, Any]
    steps: int
    tools: tuple[str, ...]
    seconds: float


def goals() -> list[Goal]:
    """Return the goals of the public set; skips where it is not there."""
    return [
        Goal(
            one["id"],
            one["source"],
            tuple({"id": str(n), "name": name} for n, name in enumerate(one["nodes"], 1)),
            frozenset((str(then), str(first)) for first, then in one["edges"]),
        )
        for one in rows(*SET)
    ]


def shop() -> Goal:
    """Return the goal of thirty tasks with its own sentences, 45 dependencies and three cycles."""
    read = json.loads(SHOP.read_text())
    return Goal("shop", "shop", tuple(read["tasks"]), frozenset(map(tuple, read["dependencies"])))


def is_valid(plan: dict[str, Any]) -> bool:
    """Return whether every task is in one wave, behind all that it needs but what was cut, and so in the order."""
    place = {task: wave["wave"] for wave in plan["execution_waves"] for task in wave["tasks"]}
    listed = {one["id"]: at for at, one in enumerate(plan["prioritized_tasks"])}
    count = sum(len(wave["tasks"]) for wave in plan["execution_waves"])
    kept = [one for one in plan["dependencies"] if not one.get("cut")]
    return (
        place.keys() == listed.keys()
        and count == len(place)
        and all(place[one["task"]] > place[one["needs"]] for one in kept)
        and all(listed[one["task"]] > listed[one["needs"]] for one in kept)
    )


def is_in_order(called: Sequence[str]) -> bool:
    """Return whether tools were called in the order that is asked for, and none that does not belong there."""
    places = [TASK_TOOLS.index(tool) if tool in TASK_TOOLS else -1 for tool in called]
    return -1 not in places and places == sorted(places) and "detect_dependencies" in called


def decided(some: Iterable[Goal], *, model: bool) -> Measured:
    """Measure plans as the executor's own rules come to them, without a bus."""
    found = Measured()
    for goal in some:
        log = Log(config=PLANNER, input=goal.input, max_steps=STEPS_MAX)
        began = time.perf_counter()
        action = played(log, scripted(goal.told(), goal.answer()) if model else offline)
        assert isinstance(action, Complete), action
        job = fold(log.events)
        tools = tuple(one.tool for one in log.events if isinstance(one, e.ToolRequested))
        found.add(goal, Plan(json.loads(action.answer), job.model.step, tools, time.perf_counter() - began))
    return found


def through_every_service(some: Sequence[Goal], *, model: bool) -> Measured:
    """Measure plans as jobs of the bundled agent, on a bus and a database of their own."""
    return asyncio.run(_through_every_service(some, model=model))


async def _through_every_service(some: Sequence[Goal], *, model: bool) -> Measured:
    found = Measured()
    async with AsyncExitStack() as stack:
        chat = await stack.enter_async_context(ChatServer(_script(some)))
        home = Path(stack.enter_context(TemporaryDirectory()))
        platform = await stack.enter_async_context(tool_platform(home, limits=Limits()))
        await platform.start(*SERVICES, executor=ExecutorSettings(chat_base_url=chat.url))
        for number, goal in enumerate(some):
            found.add(goal, await _job(platform, f"plan-{number}", goal, model=model))
    return found


async def _job(platform: Platform, job_id: str, goal: Goal, *, model: bool) -> Plan:
    options = {"model": "chat/m"} if model else {"model": "offline/extractive"}
    await platform.publish({"agent": "task-orchestrator", "input": goal.input, "job_id": job_id, "options": options})
    ended = await platform.wait_for(job_id)
    assert ended.answer is not None and ended.ended_at is not None and ended.created_at is not None, ended.error
    tools = tuple(event.tool for event in await platform.events_of(job_id, e.ToolRequested))
    return Plan(json.loads(ended.answer), ended.steps, tools, (ended.ended_at - ended.created_at).total_seconds())


def _script(some: Sequence[Goal]) -> Callable[[dict[str, Any]], Say]:
    """Return a provider whose model knows each goal, calls the tools in their order and then answers."""
    known = {goal.id: goal for goal in some}

    def script(body: dict[str, Any]) -> Say:
        # Behind the input stands when it was sent.
        asked, _ = json.JSONDecoder().raw_decode(
            next(text for text in _user_texts(body) if text.startswith('{"outcome"'))
        )
        goal = known[asked["outcome"]]
        told = goal.told()
        step = sum(message["role"] == "assistant" for message in body["messages"])
        calls: tuple[tuple[str, dict[str, Any]], ...] = (
            ("semantic_search", {"query": goal.id}),
            ("detect-dependencies", {"tasks": told}),
            ("query_task_graph", {"names": [task["name"] for task in told]}),
            ("cluster_by_similarity", {"tasks": told}),
        )
        return Say(tools=(calls[step],)) if step < len(calls) else Say(text=goal.answer())

    return script


def _user_texts(body: dict[str, Any]) -> Iterator[str]:
    for message in body["messages"]:
        if message["role"] == "user":
            content = message["content"]
            yield from [content] if isinstance(content, str) else [part.get("text", "") for part in content]
