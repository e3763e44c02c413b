"""A session runs one job at a time, in the order of its turns, wherever a router or an executor is killed.

The router's handlers and the executor's claim, run and follow-up are the real ones, on a real bus and database. A
process dies before or after any of its writes to either, and at any failpoint; what it had not acked comes again.
"""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from wayline.chassis import Bus
from wayline.contracts import events as e
from wayline.contracts.errors import Conflict
from wayline.contracts.jobs import SubmitJob
from wayline.contracts.sessions import DeleteSession
from wayline.executor.hold import log_writer
from wayline.executor.perform import follow_up
from wayline.executor.replay import replay
from wayline.journal import JobLog, State, fold, read_history, read_record, record_read
from wayline.router.jobs import first_records
from wayline.router.jobs.handlers import settlements
from wayline.router.sessions import turns
from wayline.testkit.walks import seeds

from .conftest import TENANT, Office
from .mortal_world import ENDS, MortalWorld

SESSIONS = ("s1", "s2")
JOBS_MAX = 8
STEPS = 60
ROUNDS = 4
POINTS_MAX = 10
"""At how many writes and failpoints a process can die, at the most that is tried."""
AGAIN = 0.2
"""How often something comes again while a stalled process still has it."""


class World(MortalWorld):
    """Sessions, and turns of them."""

    def submit(self, session: str, when_busy: str) -> None:
        """Submit another turn."""
        job_id = f"r{self.round}j{len(self.submitted)}"
        body = {"tenant": TENANT, "agent": "assistant", "input": job_id, "job_id": job_id}
        body["session_id"] = f"r{self.round}{session}"
        self.queue(SubmitJob.model_validate({**body, "options": {"when_busy": when_busy}}))

    async def forget(self, session: str) -> None:
        """Delete a session, where it is idle."""
        _, handlers = self.router()
        with suppress(Conflict):
            await handlers.sessions.on_delete(DeleteSession(tenant=TENANT, session_id=f"r{self.round}{session}"))

    async def check(self) -> None:
        """Check that no turn's model was asked before the turns before it had ended."""
        asked_at: dict[str, int] = {}
        ended_at: dict[str, int] = {}
        before: dict[str, str | None] = {}
        for job_id in self.submitted:
            log = JobLog(self.bus, TENANT, job_id)
            async for message in record_read(self.bus, log.subject):
                sequence = int((message.headers or {})["Nats-Sequence"])
                for event in read_record(message.data):
                    if isinstance(event, e.JobSubmitted) and event.turn is not None:
                        before[job_id] = event.turn.after
                    elif isinstance(event, e.ModelRequested):
                        asked_at.setdefault(job_id, sequence)
                    elif event.type in ENDS:
                        assert job_id not in ended_at, "two ends"
                        ended_at[job_id] = sequence
        for job_id, sequence in asked_at.items():
            earlier = before.get(job_id)
            while earlier is not None:
                assert ended_at.get(earlier, NEVER) < sequence, f"{job_id} began before the end of {earlier}"
                earlier = before.get(earlier)
        followed = [after for after in before.values() if after is not None]
        assert len(followed) == len(set(followed)), "two jobs come after one"


NEVER = 1 << 62


@pytest.fixture
async def world(bus: Bus, office: Office, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(bus, office.store)
    world.put_in_place(monkeypatch, turns, settlements, first_records, log_writer, follow_up)
    return world


async def step(world: World, chance: random.Random) -> None:
    """Do one thing, and maybe die or stall at it."""
    at = chance.randint(1, POINTS_MAX)
    again = chance.random() < AGAIN
    trouble = chance.choice([{}, {"dies_at": at}, {"stalls_in": at}])
    match chance.choices(range(5), weights=[2, 4, 6, 0.5, 2])[0]:
        case 0 if len(world.submitted) < JOBS_MAX:
            world.submit(chance.choice((*SESSIONS[:1], *SESSIONS)), chance.choice(["wait", "wait", "wait", "refuse"]))
        case 1 if waiting := [one.sequence for one in world.submissions if again or one.sequence not in world.taken]:
            sequence = chance.choice(waiting)
            at = [one.sequence for one in world.submissions].index(sequence)
            await world.run(world.holding(sequence, world.admit(at)), **trouble)
        case 2 if waiting := [sequence for sequence in world.tickets if again or sequence not in world.taken]:
            sequence = chance.choice(waiting)
            await world.run(world.holding(sequence, world.deliver(sequence)), **trouble)
        case 3:
            await world.run(world.forget(chance.choice(SESSIONS)), **trouble)
        case 4 if world.stalled:
            await world.go_on(chance.randrange(len(world.stalled)))
        case _:
            pass


async def check_ends(world: World) -> None:
    """Check that every job has ended, and went on from what its session had said before."""
    await world.check()
    for job_id in world.submitted:
        events = await world.events(job_id)
        head = await JobLog(world.bus, TENANT, job_id).last()
        assert head is not None
        assert head.state is State.ENDED, f"{job_id} was never woken"
        end = fold(events).session.history_end
        history = None if end is None else await read_history(world.bus, TENANT, end)
        assert replay(events, history=history).divergence is None


@pytest.mark.parametrize("seed", seeds(6))
async def test_a_session_runs_one_job_at_a_time_whoever_dies(world: World, seed: int):
    chance = random.Random(seed)
    for number in range(ROUNDS):
        world.begin(number)
        for _ in range(STEPS):
            await step(world, chance)
            await world.check()
        await world.settle_down()
        await check_ends(world)
