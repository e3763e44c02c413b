"""Programs under crashes: each call is made once, under its number, and only from a snapshot or a record that is ours.

The executor's own code and the real interpreter run; the log, the registry with its ledger, and the store of snapshots
are played in memory. A process dies or is drained at any failpoint, snapshots are tampered with, and a build may have
another text for a program that has begun.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, ToolCall
from wayline.contracts.jobs import DecideApproval, Signal
from wayline.contracts.tools import RUN_CODE, Effect, ToolDefinition
from wayline.executor import run_job
from wayline.executor.adapters import snapshots, tool_registry
from wayline.executor.adapters.snapshots import Snapshots
from wayline.executor.decide.actions import CallModel
from wayline.executor.hold import held_job, log_writer, signals
from wayline.executor.hold.claim import Ticket
from wayline.executor.perform import run_program
from wayline.executor.prompt.builtin_tools import pin
from wayline.executor.prompt.programs import code_of
from wayline.executor.replay import replay
from wayline.journal import Call, Head, Job, State, encode, fold
from wayline.journal.log import Stored
from wayline.sandbox import Program, Sandbox, SnapshotKeys, SnapshotOwner, Suspended
from wayline.sandbox import snapshots as snapshot_format
from wayline.testkit.walks import seeds

from . import memory_world
from .memory_world import APPROVALS, JOB_ID, SIGNALS, TENANT, Killed, Process, World, first_record

LOOK = ToolDefinition(
    name="look",
    effect=Effect.READ,
    input_schema={"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]},
)
LOOP = """
done = []
for n in range(1, 4):
    done.append(await pay(usd=n))
done
"""
BESIDE = """
import asyncio
done = await asyncio.gather(pay(usd=1), look(at=2), pay(usd=3))
[*done, await look(at=4)]
"""
LATE = """
await look(at=1)
[await pay(usd=2), await look(at=3), await pay(usd=4)]
"""
CALLS: dict[str, tuple[tuple[str, int], ...]] = {
    LOOP: (("pay", 1), ("pay", 2), ("pay", 3)),
    BESIDE: (("pay", 1), ("look", 2), ("pay", 3), ("look", 4)),
    LATE: (("look", 1), ("pay", 2), ("look", 3), ("pay", 4)),
}
"""What each program asks for, in order: the tool, and the number that it is given."""
OTHER = 100
"""What a build with other texts adds to every payment."""
POINTS_MAX = 14
DELIVERIES_MAX = 80
KEYS = [("new", b"n" * 32), ("old", b"o" * 32)]
STEPS = 25
ROUNDS = 12


class MemoryClaims:
    """Objects by name, which somebody may change."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    async def put(self, prefix: str, body: bytes) -> str:
        name = f"{prefix}/s{len(self.objects)}"
        self.objects[name] = body
        return name

    async def get(self, name: str, *, within: str) -> bytes:
        assert name.startswith(within)
        return self.objects[name]


class ProgramWorld(World):
    """A job whose model answers with programs."""

    def __init__(self, programs: tuple[tuple[str, ...], ...]) -> None:
        super().__init__(())
        self.programs = programs
        self.claims = MemoryClaims()
        self.spoiled: set[str] = set()
        self.texts: dict[str, str] = {}
        """The program that each snapshot is of."""
        self.believed: list[str] = []
        """Snapshots that were loaded when somebody had changed them, or for another program."""
        self.drains_in: int | None = None
        self.process: Process | None = None
        self.other_text = False
        self.retried = Counter[str]()

    def reach(self, point: Failpoint | None = None) -> None:
        if self.drains_in is not None:
            self.drains_in -= 1
            if self.drains_in == 0 and self.process is not None and self.process.held is not None:
                self.process.held.draining.set()
                self.process.held.wake()
        super().reach(point)

    async def ask(self, request: Any, kind: type[Any], **options: Any) -> Any:
        # Somebody else has a turn: calls beside each other are under way together.
        await asyncio.sleep(0)
        return await super().ask(request, kind, **options)

    def tools_of(self, job: Job, known: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
        assert job.routing.config is not None
        return pin(job.routing.config.tools, known, code=True)

    def answer(self, step: int) -> AssistantMessage:
        if step > len(self.programs):
            return AssistantMessage(text="It is done.")
        calls = [
            ToolCall(call=f"run{number}", tool=RUN_CODE, arguments={"code": code})
            for number, code in enumerate(self.programs[step - 1])
        ]
        return AssistantMessage(tool_calls=tuple(calls))

    def text_of(self, call: ToolCall) -> str:
        """Return a program as this build has it."""
        code = code_of(call)
        return code.replace("pay(usd=", f"pay(usd={OTHER} + ") if self.other_text else code

    async def last_record(self, *_: Any) -> Stored | None:
        return Stored(len(self.log.stored), {}, b"")


class Told:
    """One job's history: what people, programs and dying processes do."""

    def __init__(self, patch: pytest.MonkeyPatch, chance: random.Random) -> None:
        programs = [tuple(chance.choice(list(CALLS)) for _ in range(chance.choice([1, 1, 2]))) for _ in range(2)]
        world = self.world = ProgramWorld(tuple(programs[: chance.randint(1, 2)]))
        self.chance = chance
        for module in (log_writer, snapshots, tool_registry):
            patch.setattr(module, "reach", world.reach)
        patch.setattr(held_job, "last_record", world.last_record)
        patch.setattr(signals, "leader_read", world.leader_read)
        patch.setattr(signals, "bulk_read", world.bulk_read)
        patch.setattr(memory_world, "LOOK", LOOK)
        patch.setattr(run_program, "code_of", world.text_of)
        patch.setitem(run_job.PERFORM, CallModel, world.call_model)
        first = first_record(AgentConfig(code=True, tools=("look", "pay"), tools_in_order=chance.random() < 0.5))
        world.log.store(Head(0, State.NEW, first[-1].seq, "hash"), encode(first))
        world.tickets.append(Ticket(TENANT, JOB_ID, 1, 100, 0))

    @property
    def events(self) -> list[e.Event]:
        return self.world.log.events

    @property
    def ended(self) -> bool:
        return self.world.log.stored[-1][0].state is State.ENDED

    def undecided(self) -> list[Call]:
        """Return the calls of which a person must say what became of them."""
        return [call for call in fold(self.events).code.program_calls if call.undecided]

    # What happens

    def run(self, *, dies_at: int | None = None, drains_at: int | None = None) -> None:
        """Deliver a ticket to a new process."""
        world = self.world
        ticket = world.tickets[-1]
        ticket = Ticket(TENANT, JOB_ID, ticket.at, ticket.sequence, ticket.delivery + 1)
        world.tickets[-1] = ticket
        world.points_left, world.drains_in = dies_at, drains_at
        with suppress(Killed):
            asyncio.run(self._deliver(ticket))
        world.points_left = world.drains_in = world.process = None

    async def _deliver(self, ticket: Ticket) -> None:
        world = self.world
        async with Sandbox() as sandbox:
            process = world.process = Process(world)
            process.services.sandbox = sandbox
            process.services.snapshots = WatchedSnapshots(world)
            await process.deliver(ticket)

    def decide(self, *, decision: str = "approve") -> None:
        """Decide on an approval that waits."""
        asked = self.chance.choice(fold(self.events).tools.pending)
        body = DecideApproval.model_validate(
            {"tenant": TENANT, "approval_id": asked.approval_id, "decision": decision, "job_id": JOB_ID}
        )
        asyncio.run(self.world.tell(APPROVALS, body, asked.at))

    def answer(self, outcome: str) -> None:
        """Say what became of a payment of which nobody knows."""
        call = self.undecided()[0]
        assert call.key is not None
        if outcome == "retry":
            self.world.retried["/".join(call.key.split("/")[:4])] += 1
        body = {"type": "answer", "decision_id": call.decision_id, "outcome": outcome, "content": "settled"}
        signal = Signal.model_validate({"tenant": TENANT, "signal": body})
        asyncio.run(self.world.tell(SIGNALS, signal, self.events[-1].at + timedelta(seconds=1)))

    def spoil(self) -> None:
        """Change the newest snapshot, or put another one in its place."""
        world = self.world
        if not world.claims.objects:
            return
        name = list(world.claims.objects)[-1]
        body = bytearray(world.claims.objects[name])
        match self.chance.randrange(4):
            case 0:
                body[self.chance.randrange(len(body))] ^= 1
            case 1:
                del body[self.chance.randrange(len(body)) :]
            case 2:
                body = bytearray(signed_anew(bytes(body), [("stranger", b"s" * 32)]))
            case _:
                body = bytearray(signed_anew(bytes(body), KEYS, interpreter="monty 0.0.1"))
        world.claims.objects[name] = bytes(body)
        world.spoiled.add(name)

    # What always holds

    def check(self) -> None:
        """Check every call that a program has made, and every payment."""
        world = self.world
        assert not world.believed, "a snapshot was loaded that is not ours"
        asked = {event.key: event for event in self.events if isinstance(event, e.ToolRequested)}
        paid = Counter("/".join(payment.key.split("/")[:4]) for payment in world.payments)
        for payment in world.payments:
            assert payment.arguments == asked[payment.key].arguments
        for call, times in paid.items():
            assert times <= 1 + world.retried[call], f"{call} was paid {times} times"
        for step, programs in enumerate(world.programs, 1):
            self._check_step(step, programs)

    def _check_step(self, step: int, programs: tuple[str, ...]) -> None:
        asked: dict[str, list[e.ToolRequested]] = {}
        for event in self.events:
            if isinstance(event, e.ToolRequested) and event.step == step and event.program:
                asked.setdefault(event.program, []).append(event)
        earlier = 0
        for number, code in enumerate(programs):
            made = {one.call: one for one in reversed(asked.get(f"run{number}", []))}
            others = set[bool]()
            for place, (tool, given) in enumerate(CALLS[code], earlier + 1):
                if (one := made.pop(f"c{place}", None)) is None:
                    continue
                assert (one.tool, one.key) == (tool, f"{TENANT}/{JOB_ID}/{step}/c{place}")
                [value] = one.arguments.values()
                assert value in (given, given + OTHER * (tool == "pay"))
                if tool == "pay":
                    others.add(value != given)
            assert not made, f"calls that no program makes: {list(made)}"
            assert len(others) <= 1, "a program went on with other arguments than are recorded"
            earlier += max((int(name[1:]) - earlier for name in self._names(step, f"run{number}")), default=0)

    def _names(self, step: int, program: str) -> set[str]:
        """Return the calls for which a program has asked."""
        kinds = (e.ToolRequested, e.ApprovalRequested)
        return {
            one.call for one in self.events if isinstance(one, kinds) and one.program == program and one.step == step
        }

    def check_results(self) -> None:
        """Check that a program that came to its end returned what its calls had returned."""
        outcomes = {
            (event.step, event.call): event.content for event in self.events if isinstance(event, e.ToolCompleted)
        }
        for end in self.events:
            if not isinstance(end, e.CodeCompleted) or end.status != "completed":
                continue
            shown = next(
                event.content
                for event in self.events
                if isinstance(event, e.ToolCompleted) and (event.step, event.call) == (end.step, end.call)
            )
            names = sorted(self._names(end.step, end.call), key=lambda name: int(name[1:]))
            code = self.world.programs[end.step - 1][int(end.call.removeprefix("run"))]
            assert len(names) == len(CALLS[code])
            first = 1 if code == LATE else 0
            places = [shown.index(outcomes[end.step, name]) for name in names[first:]]
            assert len(places) == len(names) - first


class WatchedSnapshots(Snapshots):
    """Snapshots that note which were believed."""

    def __init__(self, world: ProgramWorld) -> None:
        super().__init__(world, SnapshotKeys(KEYS))  # type: ignore[arg-type]
        self._world = world

    async def put(self, suspended: Suspended, program: Program, owner: SnapshotOwner) -> str:
        name = await super().put(suspended, program, owner)
        self._world.texts[name] = program.code
        return name

    async def get(self, name: str, program: Program, owner: SnapshotOwner) -> Suspended:
        suspended = await super().get(name, program, owner)
        if name in self._world.spoiled or self._world.texts[name] != program.code:
            self._world.believed.append(name)
        return suspended


def signed_anew(snapshot: bytes, keys: list[tuple[str, bytes]], *, interpreter: str | None = None) -> bytes:
    """Return a snapshot as somebody with these keys, or another interpreter, would have written it."""
    start = len(snapshot_format.FORMAT) + 32
    body = snapshot[start:]
    length = int.from_bytes(body[:4], "big")
    header = body[4 : 4 + length].replace(b'"key": "new"', f'"key": "{keys[0][0]}"'.encode())
    if interpreter is not None:
        header = header.replace(snapshot_format.INTERPRETER.encode(), interpreter.encode())
    body = len(header).to_bytes(4, "big") + header + body[4 + length :]
    signature = SnapshotKeys(keys).sign(keys[0][0], body)
    assert signature is not None
    return snapshot_format.FORMAT + signature + body


def step(told: Told) -> None:
    """Do one thing: mostly processes that run and people who decide."""
    chance, world = told.chance, told.world
    match chance.choices(range(6), weights=[6, 5, 1, 1, 0.7, 0.15])[0]:
        case 0 if world.tickets:
            at = chance.randint(1, POINTS_MAX)
            told.run(**chance.choice([{}, {"dies_at": at}, {"drains_at": at}, {"dies_at": at + 3, "drains_at": at}]))
        case 1 if fold(told.events).tools.pending:
            told.decide(decision=chance.choices(["approve", "deny"], weights=[9, 1])[0])
        case 2:
            told.spoil()
        case 3 if told.undecided():
            told.answer(chance.choice(["retry", "succeeded"]))
        case 4:
            world.loses_answers = True
        case 5:
            world.other_text = not world.other_text
        case _:
            pass


def bring_to_its_end(told: Told) -> None:
    """Approve whatever waits, with every process alive: the job ends."""
    for _ in range(DELIVERIES_MAX):
        if told.ended:
            return
        while pending := fold(told.events).tools.pending:
            before = len(pending)
            told.decide()
            if len(fold(told.events).tools.pending) == before:
                break
        if told.undecided():
            told.answer("succeeded")
        assert told.world.tickets, "nobody wakes the job"
        told.run()
    raise AssertionError("the job does not end")


@pytest.mark.parametrize("seed", [(0, 7, 11, 18, 29)[place] for place in seeds(5)])
def test_programs_repeat_no_call_whoever_dies(monkeypatch: pytest.MonkeyPatch, seed: int):
    chance = random.Random(seed)
    statuses = Counter[str]()
    for _ in range(ROUNDS):
        told = Told(monkeypatch, chance)
        for _ in range(STEPS):
            step(told)
            told.check()
        bring_to_its_end(told)
        told.check()
        told.check_results()
        if not any(event.type == "code.completed" and event.status == "diverged" for event in told.events):
            assert replay(told.events).divergence is None
        statuses.update(event.status for event in told.events if isinstance(event, e.CodeCompleted))
    assert statuses["completed"]
