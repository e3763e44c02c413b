"""The platform as separate processes, and the jobs that the fault tests run on it."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import asyncpg
from nats.aio.msg import Msg
from pydantic import BaseModel

from wayline.chassis import keep_trying
from wayline.chassis.connection.bus import AWAY
from wayline.contracts import headers as h
from wayline.contracts.chat import TextPart
from wayline.contracts.errors import Unavailable
from wayline.contracts.events import ApprovalRequested, ToolCompleted
from wayline.contracts.jobs import Answer, DecideApproval, EarlierMessage, JobOptions, Signal, SubmitJob, Turn
from wayline.journal import Job, bulk_read, leader_read, read_record
from wayline.simulator import Simulator
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer
from wayline.testkit.processes import Fleet, ServiceProcess

from .log_checks import problems, story
from .unfinished import mistraced, unfinished
from .zones import Zone

TENANT = "default"
ONCE, IDEMPOTENT = "effects__pay_once", "effects__put_idempotent"
RECONCILE, READ = "effects__book_reconcile", "effects__look_read"
CLOCK = "get_current_time"
ASIDE = (
    *("The task:", "Which of these passages", "What was said in a conversation", "What the user said"),
    "What is remembered of a user",
)
"""How questions to a helper model begin."""
REREAD_EVERY_S = 1.0
"""How often a log is read again although no news of it came: what is republished is lost while NATS is away."""
EVERY_EFFECT = (ONCE, IDEMPOTENT, RECONCILE, READ)

Reply = dict[str, Any]
"""One answer of the model, as a job's input says it."""


def calls(*tools: str, **more: Any) -> Reply:
    """Return a turn of the model that asks for these tools beside each other."""
    return {"tools": [[tool, {}] for tool in tools], **more}


def runs(program: str, **more: Any) -> Reply:
    """Return a reply of the model that is a program."""
    return {"tools": [["run_code", {"code": program}]], **more}


def says(text: str, **more: Any) -> Reply:
    """Return a turn of the model that answers."""
    return {"text": text, **more}


def encode_plan(plan: Sequence[Reply]) -> str:
    """Return a plan as the input of a job."""
    return json.dumps(plan)


def text_of(message: dict[str, Any]) -> str:
    """Return the first text of a message to a model."""
    content = message["content"]
    return content if isinstance(content, str) else content[0].get("text", "") if content else ""


class FaultPlatform(Platform):
    """A platform of processes for the tests of a module; each test has jobs of its own."""

    fleet: Fleet
    chat: ChatServer
    effects: EffectsServer
    slow: EffectsServer
    """The same effects, slowly, where a test needs time while a tool works."""
    provider: Simulator
    """Every provider, where a test counts money."""
    port: int = 0
    """Of the gateway, where there is one."""
    ports: Mapping[str, int] = MappingProxyType({})
    """Of the gateways, by zone."""
    tracing_port: int = 0
    served: tuple[str, ...] = ()
    """The services that run in a test of random kills."""
    helper: Say = Say("In short: all is well.")
    """What is answered to a call beside the conversation."""
    kills: int = 0
    """Executors that a model has killed."""
    reads_overlap: bool = False
    """Whether a read may still act when another executor, which took over its job, has recorded its result."""
    records_seen: int = 0
    """Records of all logs since the start."""
    zones: Mapping[str, Zone] = MappingProxyType({})
    """Of a cluster's network, by name."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.answered: set[str] = set()
        self.ended: set[str] = set()
        self._unchanged_until: dict[str, float] = {}
        """When a log that was read is read again, where no news of its job comes before."""
        self._superuser: asyncpg.Connection | None = None
        self.zone_of: dict[int, str] = {}
        """The zone of each process that was started in one."""
        self.acted_at_end: dict[tuple[str, str], int] = {}
        """How often a tool had acted for a key when its result was in the log."""
        self.holds: dict[str, asyncio.Event] = {}
        """Model calls that write one word and then wait, by the name in their turn; the first of a name is held."""

    def spawn_in(self, zone: str, name: str) -> ServiceProcess:
        """Start a service in a zone of the network, without waiting for it."""
        environment = self.zones[zone].environment(self.fleet.env.get(name, {}))
        if name == "gateway":
            environment["WAYLINE_HTTP_PORT"] = str(self.ports[zone])
        process = self.fleet.spawn(name, env=environment)
        self.zone_of[process.pid] = zone
        return process

    def script(self, body: dict[str, Any]) -> Say:
        """The model: a job's own input says what is answered to it, turn by turn."""
        messages = body["messages"]
        if any(text_of(message).startswith(ASIDE) for message in messages if message["role"] == "user"):
            return self.helper
        # Before it stands what was said before the job.
        at = next(at for at, message in enumerate(messages) if text_of(message).startswith("[{"))
        # What a model is told beside the user's words follows them, in paragraphs of its own.
        plan = json.loads(text_of(messages[at]).split("\n\n")[0])
        turn = plan[min(sum(message["role"] == "assistant" for message in messages[at:]), len(plan) - 1)]
        held = None
        if "hold" in turn and turn["hold"] not in self.holds:
            held = self.holds[turn["hold"]] = asyncio.Event()
        if "kill_after_s" in turn:
            asyncio.get_running_loop().call_later(turn["kill_after_s"], self._kill_executors)
        tools = tuple((tool, given) for tool, given in turn.get("tools", ()))
        return Say(turn.get("text", ""), tools, turn.get("delay_s", 0), hold=held)

    def _kill_executors(self) -> None:
        for process in self.fleet.running("executor"):
            process.kill()
            self.kills += 1

    async def watch(self) -> None:
        """Count every key's effects when its result is recorded: from then on there may be no more."""

        async def heard(message: Msg) -> None:
            self.records_seen += 1
            self._unchanged_until.pop(message.subject.rpartition(".")[2], None)
            for event in read_record(await self.bus.body(message)):
                if isinstance(event, ToolCompleted):
                    key = f"{TENANT}/{event.job_id}/{event.step}/{event.call}"
                    tool = event.tool.removeprefix("effects__")
                    self.acted_at_end[tool, key] = self.effects.count(tool, key)

        await self.bus.nc.subscribe("live.*.*", cb=heard)

    async def submit_plan(
        self,
        job_id: str,
        *plan: Reply,
        tenant: str = TENANT,
        agent: str = "assistant",
        session: str | None = None,
        said: str = "",
        user: str | None = None,
        **options: Any,
    ) -> str:
        """Publish a job whose model follows a plan, and wait until the bus has it; `said` is what was before it."""
        job = SubmitJob(
            tenant=tenant,
            agent=agent,
            input=encode_plan(plan),
            job_id=job_id,
            session_id=session,
            history=(EarlierMessage(role="user", parts=(TextPart(text=said),)),) if said else (),
            user_id=user,
            options=JobOptions(**{"model": "chat/x", "max_steps": 20, **options}),
        )
        await self.bus.store(job.subject, job.to_wire(), {h.MSG_ID: job_id})
        return job_id

    async def records(self, job_id: str) -> list[Msg]:
        """Return every record of a log, each with what was moved out of it; ask again while a leader is chosen."""
        return await keep_trying("reading a log", lambda: self._records(job_id), on=Unavailable, within_s=60)

    async def _records(self, job_id: str) -> list[Msg]:
        subject = f"events.{TENANT}.{job_id}"
        last = await leader_read(self.bus, "EVENTS", subject)
        if last is None:
            return []
        records = [message async for message in bulk_read(self.bus, "EVENTS", subject, upto=last.sequence)]
        for record in records:
            record.data = await self.bus.body(record, tenant=TENANT)
        return records

    async def until_ended(self, *job_ids: str, within: float = 60.0) -> None:
        """Wait until every job has ended, deciding in favour of the tool wherever a human is asked."""
        left = set(job_ids)

        async def all_ended() -> bool:
            # A log whose leader has just gone is read a moment later.
            with suppress(Unavailable, *AWAY):
                left.difference_update(await self.advance(*left))
            return not left

        try:
            await until(all_ended, within=within, why=f"{len(left)} jobs end")
        except AssertionError as error:
            stories = [f"{job_id}:\n{story(await self.records(job_id))}" for job_id in sorted(left)[:5]]
            raise AssertionError("\n".join([f"{error}: {sorted(left)}", *stories])) from None

    async def until_dead(self, process: ServiceProcess, *job_ids: str, within: float = 60.0) -> None:
        """Wait until a process has died at its failpoint, deciding meanwhile what is asked of a human."""

        async def dead() -> bool:
            await self.advance(*job_ids)
            return process.exited

        try:
            await until(dead, within=within, why=f"{process.failpoint} is reached; it said:\n{process.tail}")
        except AssertionError as error:
            stories = [f"{job_id}:\n{story(await self.records(job_id))}" for job_id in job_ids]
            raise AssertionError("\n".join([str(error), *stories])) from None
        assert process.killed, f"ended with {process.child.process.returncode}:\n{process.tail}"

    async def set_ack_wait(self, seconds: float) -> None:
        """Have a run ticket come again after so long without a word of its holder's."""
        for name in ("interactive", "interactive_backlog"):
            present = (await self.bus.js.consumer_info("RUN", name)).config
            await self.bus.js.add_consumer("RUN", present.evolve(ack_wait=seconds))

    async def advance(self, *job_ids: str) -> set[str]:
        """Answer every question of these jobs, and return those that have ended; only a log with news is read."""
        for job_id in job_ids:
            if job_id in self.ended or time.monotonic() < self._unchanged_until.get(job_id, 0):
                continue
            self._unchanged_until[job_id] = time.monotonic() + REREAD_EVERY_S  # before it is read: news may come
            job = await self.job(job_id)
            if job.life.ended:
                self.ended.add(job_id)
            elif job.life.waiting:
                await self.answer_all(job)
        return self.ended.intersection(job_ids)

    async def answer_all(self, job: Job) -> None:
        """Say of every call whose outcome is unknown that it took effect; each is said once, and all of them together.

        One after the other, the first could wake the job and have it parked again before the second is there.
        """
        calls = (*job.tools.calls, *job.code.program_calls)
        open_decisions = [call.decision_id for call in calls if call.undecided and call.decision_id]
        unanswered = [
            decision_id for decision_id in open_decisions if f"{job.job_id}/{decision_id}" not in self.answered
        ]
        self.answered.update(f"{job.job_id}/{decision_id}" for decision_id in unanswered)
        answers = [Answer(decision_id=decision_id, outcome="succeeded", by="a test") for decision_id in unanswered]
        undecided = [asked for asked in job.tools.pending if f"{job.job_id}/{asked.approval_id}" not in self.answered]
        self.answered.update(f"{job.job_id}/{asked.approval_id}" for asked in undecided)
        await asyncio.gather(
            *(self.signal(job.job_id, answer) for answer in answers),
            *(self.decide(job.job_id, asked) for asked in undecided),
        )

    async def decide(self, job_id: str, asked: ApprovalRequested) -> None:  # type: ignore[override]
        """Approve the first call of a step, or the second of a program, and deny the others."""
        decision = "approve" if asked.call in ("1", "c2") else "deny"
        body = {"tenant": TENANT, "job_id": job_id, "approval_id": asked.approval_id, "decision": decision}
        await self.bus.publish(DecideApproval.model_validate(body), msg_id=uuid4().hex)

    async def signal(self, job_id: str, signal: BaseModel | None = None, **fields: Any) -> int:
        """Publish a signal, once more where NATS was killed meanwhile."""
        body = {"tenant": TENANT, "job_id": job_id, "signal": signal or fields}
        message = Signal.model_validate(body)
        return (await self.bus.publish(message, msg_id=uuid4().hex)).seq

    async def forget_outcome(self, job_id: str, step: int, call: str) -> str:
        """Have the ledger not know what became of a call that the job is going to make."""
        key = f"{TENANT}/{job_id}/{step}/{call}"
        await self.sql(
            "INSERT INTO tools.calls (tenant, key, job_id, tool, effect, state, attempt, owner, lease_until, ended_at)"
            " VALUES ($1, $2, $3, $4, 'once', 'unknown', 1, 'gone', clock_timestamp(), clock_timestamp())",
            *(TENANT, key, job_id, ONCE),
        )
        return key

    async def sql(self, statement: str, *values: Any) -> list[asyncpg.Record]:
        """Return the rows of a statement, as the superuser, whose connection lasts until Postgres is killed."""
        if self._superuser is None or self._superuser.is_closed():
            self._superuser = await self._stack.enter_async_context(self.superuser())
        return await self._superuser.fetch(statement, *values)

    async def until_quiet(self, within: float = 60.0) -> None:
        """Wait until every ticket and submission is acked, every signal heard and every reservation settled."""
        left: list[str] = []

        async def quiet() -> bool:
            try:
                left[:] = await unfinished(self)
            except AWAY as error:
                left[:] = [f"{type(error).__name__}: a stream has no leader"]
            return not left

        try:
            await until(quiet, within=within, why="everything is acked and settled")
        except AssertionError as error:
            raise AssertionError(f"{error}: {left}") from None

    async def until_traced(self, *job_ids: str, within: float = 60.0) -> None:
        """Wait until tracing says of every job what its log says."""
        wrong: list[str] = []

        async def traced() -> bool:
            wrong[:] = [difference for job_id in job_ids for difference in await mistraced(self, job_id)]
            return not wrong

        try:
            await until(traced, within=within, why="tracing's totals are the log's")
        except AssertionError as error:
            raise AssertionError(f"{error}: {wrong}") from None

    async def check(self, *job_ids: str) -> None:
        """Check what must be true of every job, whatever was killed."""
        asked = Counter(attempt for attempt, _ in self.chat.calls)
        for job_id in job_ids:
            records = await self.records(job_id)
            assert problems(records) == [], f"{job_id}: {problems(records)}\n{story(records)}"
            ours = {attempt: n for attempt, n in asked.items() if attempt.startswith(f"{TENANT}/{job_id}/")}
            assert set(ours.values()) <= {1}, f"{job_id}: an attempt was sent to the model twice: {ours}"
        seen = {of: n for of, n in self.acted_at_end.items() if not (self.reads_overlap and of[0] == "look_read")}
        again = {of: (n, self.effects.count(*of)) for of, n in seen.items() if self.effects.count(*of) > n}
        assert again == {}, f"a call whose result was recorded ran again: {again}"
        assert self.effects.repeated("pay_once") == {}, "a `once` tool acted twice"

    async def check_turns(self, *job_ids: str) -> None:
        """Check that the jobs of a session have one order, and each was claimed after the end of the one before."""
        logs = [await self.events(job_id) for job_id in job_ids]
        logs.sort(key=lambda log: log[0].turn.number)  # type: ignore[attr-defined]
        before = None
        for number, log in enumerate(logs, 1):
            assert log[0].turn == Turn(number=number, after=before and before[-1].job_id)  # type: ignore[attr-defined]
            claimed = next(event for event in log if event.type == "job.claimed")
            assert before is None or before[-1].at <= claimed.at
            before = log
