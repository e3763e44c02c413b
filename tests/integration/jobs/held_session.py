"""A session whose provider answers each job when the test lets it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.sessions import GetSession, SessionTurns
from wayline.simulator.chat_server import Say
from wayline.testkit import Platform, until


@dataclass
class Session:
    """A session whose provider answers a job only once the test lets it."""

    platform: Platform
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """The jobs that the provider was asked for, in order."""

    def say(self, body: dict[str, Any]) -> Say:
        job_id = str(body["messages"][-1]["content"]).split()[2]
        self.asked.append(job_id)
        return Say(text="Yes indeed.", hold=self.gates.get(job_id))

    async def submit(self, job_id: str, *, held: bool = False, session: str = "s1", **options: Any) -> None:
        if held:
            self.gates[job_id] = asyncio.Event()
        body = {"agent": "talker", "input": f"I am {job_id} .", "job_id": job_id, "session_id": session}
        await self.platform.publish({**body, "options": {"model": "chat/m", **options}})

    async def running(self, job_id: str) -> None:
        await until(lambda: job_id in self.asked, why=f"{job_id} asks its model")

    async def waiting(self, job_id: str) -> None:
        def parked(job: Any) -> bool:
            return job.life.waiting is not None and job.life.waiting.why == "turn"

        await self.platform.wait_until(job_id, parked, f"{job_id} waits for its turn")

    async def state(self) -> SessionTurns:
        return await self.platform.bus.ask(GetSession(tenant=self.platform.tenant, session_id="s1"), SessionTurns)

    async def end(self) -> None:
        """Let every job end, so that none asks the model of the next test."""
        for gate in self.gates.values():
            gate.set()
        await self.platform.wait_until_empty("SUBMIT", "RUN")

    async def ran_in_order(self, *job_ids: str) -> None:
        """Each called its model only after the end of the one before."""
        logs = [await self.platform.events(job_id) for job_id in job_ids]
        for before, after in pairwise(logs):
            asked = next(event for event in after if isinstance(event, e.ModelRequested))
            assert before[-1].at <= asked.at
