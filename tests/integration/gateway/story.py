"""A job's log as router and executor would write it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from wayline.chassis import Bus
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage
from wayline.contracts.jobs import Delta, Failure, PendingApproval, PendingToolCall, Route, SubmitJob, Waiting
from wayline.contracts.money import Usage
from wayline.contracts.tools import Effect, ToolDefinition
from wayline.journal import Head, JobLog

AT = datetime(2026, 5, 1, tzinfo=UTC)
ROUTE = Route(provider="offline", model="offline", tier="flash", reason="no key is set")


@dataclass
class Story:
    """One job, told record by record."""

    bus: Bus
    tenant: str
    job_id: str
    head: Head | None = None
    step: int = 0

    @property
    def log(self) -> JobLog:
        return JobLog(self.bus, self.tenant, self.job_id)

    async def begin(self, job: SubmitJob | None = None) -> None:
        """What the router writes."""
        job = job or SubmitJob(tenant=self.tenant, job_id=self.job_id, agent="assistant", input="What moves the sea?")
        content = job.content_hash()
        submitted = e.JobSubmitted(**self._place(1), tenant=self.tenant, job=job, content_hash=content)
        limits = e.Limits(max_steps=5, max_seconds=600, max_output_tokens=4_096)
        routed = e.JobRouted(
            **self._place(2), agent="assistant", agent_version=3, config=AgentConfig(), route=ROUTE, limits=limits
        )
        self.head = await self.log.begin([submitted, routed], content_hash=content, lane="interactive")

    async def claim(self) -> None:
        assert self.head is not None
        claimed = e.JobClaimed(**self._place(self.head.seq + 1), executor="x", epoch=1, owner="1:1", attempt=1)
        self.head = await self.log.append([claimed], self.head, owner="1:1", attempt=1, epoch=1)

    async def think(self) -> None:
        """One step: two events in one record."""
        assert self.head is not None
        self.step += 1
        call: dict[str, Any] = {
            "step": self.step,
            "attempt": 1,
            "attempt_id": ids.attempt_id(self.tenant, self.job_id, self.step, 1),
        }
        asked = e.ModelRequested(**self._place(self.head.seq + 1), **call, provider="offline", model="offline")
        completed = e.ModelCompleted(
            **self._place(self.head.seq + 2),
            **call,
            message=AssistantMessage(text=f"thought {self.step}"),
            usage=Usage(input=10, output=5),
            cost_usd=Decimal(0),
            stop_reason="end",
            duration_ms=1,
        )
        self.head = await self.log.append([asked, completed], self.head)

    async def say(self, text: str) -> None:
        """A delta, which nobody stores."""
        await self.bus.send(Delta(tenant=self.tenant, job_id=self.job_id, step=self.step, attempt=1, text=text))

    async def park(self, decision_id: str) -> None:
        await self.wait(
            Waiting(why="needs_decision", wait_id=decision_id, question="Was the mail sent?", tool="send_mail")
        )

    async def wait(self, waiting: Waiting) -> None:
        assert self.head is not None
        parked = e.JobParked(**self._place(self.head.seq + 1), waiting=waiting, signals_seen=0)
        self.head = await self.log.append([parked], self.head)

    async def ask(self, definition: ToolDefinition, **arguments: Any) -> str:
        """Ask for the approval of a call and park; returns its id."""
        assert self.head is not None
        asked = e.ModelRequested(
            **self._place(self.head.seq + 1),
            step=1,
            attempt=1,
            attempt_id=ids.attempt_id(self.tenant, self.job_id, 1, 1),
            provider="offline",
            model="offline",
            tools=(definition,),
        )
        until = AT + timedelta(days=1)
        about: dict[str, Any] = {"approval_id": "1-1-1-abc", "call": "1", "tool": definition.name}
        about |= {"arguments": arguments, "why": "agent", "expires_at": until}
        requested = e.ApprovalRequested(
            **self._place(self.head.seq + 2), **about, step=1, definition=definition.digest, policy="1/3", hash="h"
        )
        pending = PendingApproval(**about)
        waiting = Waiting(why="approval", wait_id="1-1-1-abc", expires_at=until, approvals=(pending,))
        parked = e.JobParked(**self._place(self.head.seq + 3), waiting=waiting, signals_seen=0)
        self.head = await self.log.append([asked, requested, parked], self.head)
        return "1-1-1-abc"

    async def give_out(self, tool: str, **arguments: Any) -> str:
        """Have a tool of the caller's called, and park; returns the call's key."""
        assert self.head is not None
        given = e.ClientToolsGiven(**self._place(self.head.seq + 1), tools=(tool,))
        key, until = ids.tool_key(self.tenant, self.job_id, 1, "1"), AT + timedelta(days=1)
        about: dict[str, Any] = {"step": 1, "call": "1", "tool": tool, "arguments": arguments, "key": key}
        requested = e.ToolRequested(**self._place(self.head.seq + 2), **about, effect=Effect.ONCE, expires_at=until)
        pending = PendingToolCall(**about, expires_at=until)
        waiting = Waiting(why="tool_results", wait_id=pending.wait_id, expires_at=until, tool_calls=(pending,))
        parked = e.JobParked(**self._place(self.head.seq + 3), waiting=waiting, signals_seen=0)
        self.head = await self.log.append([given, requested, parked], self.head)
        return key

    async def read_strangers(self, tool: str) -> None:
        """Have a tool return the words of strangers."""
        assert self.head is not None
        about: dict[str, Any] = {"step": self.step, "call": "1", "tool": tool, "status": "success"}
        read = e.ToolCompleted(**self._place(self.head.seq + 1), **about, words="strangers")
        self.head = await self.log.append([read], self.head)

    async def end(self, answer: str = "The moon.", **more: Any) -> None:
        assert self.head is not None
        done = e.JobCompleted(
            **self._place(self.head.seq + 1), answer=answer, steps=self.step, usage=Usage(input=10, output=5), **more
        )
        self.head = await self.log.append([done], self.head)

    async def fail(self) -> None:
        """A job whose first model call failed for good."""
        await self.begin()
        await self.claim()
        assert self.head is not None
        attempt = ids.attempt_id(self.tenant, self.job_id, 1, 1)
        call: dict[str, Any] = {"step": 1, "attempt": 1, "attempt_id": attempt}
        asked = e.ModelRequested(**self._place(self.head.seq + 1), **call, provider="offline", model="offline")
        error = Failure(code="provider_unavailable", message="it is away")
        broken = e.ModelFailed(**self._place(self.head.seq + 2), **call, error=error, retryable=False, duration_ms=1)
        ended = e.JobFailed(**self._place(self.head.seq + 3), error=error, steps=1)
        self.head = await self.log.append([asked, broken, ended], self.head)

    async def tell(self, steps: int = 1) -> None:
        """A whole short job."""
        await self.begin()
        await self.claim()
        for _ in range(steps):
            await self.think()
        await self.end()

    def _place(self, seq: int) -> dict[str, Any]:
        trace = e.SpanRef(
            trace_id=ids.trace_id(self.tenant, self.job_id), span_id=ids.job_span(self.tenant, self.job_id)
        )
        return {"job_id": self.job_id, "seq": seq, "at": AT, "trace": trace}
