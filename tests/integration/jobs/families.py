"""Agents that start each other: what several tests of children set the same way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.models import ModelCard, PutModel
from wayline.contracts.tools import RUN_AGENT
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.journal import Job
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until

from .conftest import chatting

Reply = dict[str, Any]


def says(text: str, **more: Any) -> Reply:
    """Return a reply that is the answer."""
    return {"text": text, **more}


def calls(*tools: tuple[str, dict[str, Any]]) -> Reply:
    """Return a reply that calls these tools beside each other."""
    return {"tools": list(tools)}


def ask(agent: str, *plan: Reply) -> tuple[str, dict[str, Any]]:
    """Return a call that has an agent follow a plan."""
    return RUN_AGENT, {"agent": agent, "input": encode(plan)}


def encode(plan: Sequence[Reply]) -> str:
    """Return a plan as the input of a job."""
    return json.dumps(plan)


@dataclass
class Model:
    """A model that does what the input of its job says; a reply with `hold` waits until the test lets it go on."""

    asked: list[str] = field(default_factory=list)
    """The names of the replies that were held, as they were asked for."""
    holds: dict[str, asyncio.Event] = field(default_factory=dict)

    def say(self, body: dict[str, Any]) -> Say:
        first = next(message["content"] for message in body["messages"] if message["role"] == "user")
        plan = json.loads((first if isinstance(first, str) else first[0]["text"]).split("\n\n")[0])
        turn = plan[min(sum(message["role"] == "assistant" for message in body["messages"]), len(plan) - 1)]
        hold = None
        if "hold" in turn:
            self.asked.append(turn["hold"])
            hold = self.holds.setdefault(turn["hold"], asyncio.Event())
        tools = tuple((tool, given) for tool, given in turn.get("tools", ()))
        room = body.get("max_completion_tokens") or body.get("max_tokens")
        return Say(" ".join(turn.get("text", "").split(" ")[:room]), tools, hold=hold)

    async def until_asked(self, name: str) -> None:
        await until(lambda: name in self.asked, why=f"the model is asked for {name}")

    def end_all(self) -> None:
        """Let every reply go on that is held."""
        for hold in self.holds.values():
            hold.set()


@dataclass
class Family:
    """A platform with agents that start each other, and the model of all of them."""

    platform: Platform
    chat: ChatServer
    model: Model

    def child(self, job_id: str, step: int = 1, call: int = 1) -> str:
        """Return the id of the job that a call starts."""
        return child(job_id, step, call, tenant=self.platform.tenant)

    async def submit(self, job_id: str, *plan: Reply, agent: str = "boss", **options: Any) -> None:
        """Submit a job whose model follows a plan."""
        await self.platform.submit(job_id, encode(plan), agent=agent, **options)

    async def until_parked(self, job_id: str) -> Job:
        """Wait until a job waits for its children."""

        def parked(job: Job) -> bool:
            return job.life.waiting is not None and bool(job.life.waiting.children)

        return await self.platform.wait_until(job_id, parked, f"{job_id} waits for its children")

    async def results(self, job_id: str) -> list[e.ToolCompleted]:
        return await self.platform.events_of(job_id, e.ToolCompleted)

    def asked_by(self, job_id: str) -> list[dict[str, Any]]:
        """Return the requests of a job to the model, oldest first."""
        return [body for attempt, body in self.chat.calls if attempt.split("/")[1] == job_id]


@asynccontextmanager
async def new_family(platform: Platform, chat: ChatServer) -> AsyncIterator[Family]:
    """Make a tenant with agents that start each other, on services that other tests use, too."""
    model = Model()
    chat.script = model.say
    chat.calls.clear()
    seen = await platform.new_tenant()
    await put_agents(seen)
    yield Family(seen, chat, model)
    model.end_all()


def child(job_id: str, step: int = 1, call: int = 1, *, tenant: str = "default") -> str:
    """Return the id of the job that a call starts."""
    return ids.child_id(tenant, job_id, step, str(call))


async def put_agents(platform: Platform, **boss: Any) -> None:
    """Save an agent that starts others, one of which does so, too."""
    card = ModelCard(provider="chat", model="m", tier="standard")
    await platform.bus.ask(PutModel(tenant=platform.tenant, card=card), ModelCard)
    await platform.put_agent("worker", description="Works.", tools=(), model="chat/m")
    await platform.put_agent("boss", model="chat/m", **{"tools": (), "agents": ("worker", "boss"), **boss})


def executor_settings(chat: ChatServer, **more: Any) -> ExecutorSettings:
    """Return the settings of an executor of a family."""
    return chatting(chat).model_copy(update=more)
