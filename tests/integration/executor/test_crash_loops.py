"""A job that kills whoever folds it is given up from its log's ends, and everybody else's jobs go on."""

from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from wayline.chassis import Ask, Bus
from wayline.contracts import events as e
from wayline.contracts import headers as h
from wayline.contracts.budgets import SettleJob
from wayline.contracts.chat import NoteMessage
from wayline.contracts.errors import Unavailable
from wayline.contracts.jobs import Failure
from wayline.contracts.tools import Effect, ToolReply, VoidTool
from wayline.executor import run_tickets
from wayline.executor.crash_loops import CRASH_LOOP, GIVEN_UP
from wayline.executor.hold import signals
from wayline.executor.hold.claim import CLAIMS_MAX, SILENT_MAX
from wayline.journal import JobLog, State, folding
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import until

from .conftest import ExecutorPlatform, stamp

NOTE = NoteMessage(label="CONTEXT", text="poison")


class Killed(BaseException):
    """What a fold ends with here: nobody handles it, nothing is written, the ticket is not given back."""


async def poisoned(platform: ExecutorPlatform, job_id: str, *, attempt: int = 1) -> None:
    """A job whose second record is fatal to whoever folds it, and its ticket."""
    head = await platform.begin(job_id, ticket=False)
    sequence = await platform.ticket(job_id, head)
    # Delivery 0: the ticket's first delivery to the executor that the test starts is a later one.
    owner = f"{sequence}:0"
    claim = e.JobClaimed(**stamp(job_id, 3), executor="gone", epoch=1, owner=owner, attempt=attempt)
    note = e.ContextInjected(**stamp(job_id, 4), note=NOTE)
    await JobLog(platform.bus, "default", job_id).append([claim, note], head, owner=owner, attempt=attempt, epoch=1)


async def types(platform: ExecutorPlatform, job_id: str) -> list[str]:
    return [event.type for event in await platform.events(job_id)]


async def given_up(platform: ExecutorPlatform, job_id: str) -> None:
    async def so() -> bool:
        done = (await types(platform, job_id))[-1] == "job.failed" and platform.budgets.of(SettleJob)
        return bool(done) and (await platform.bus.js.stream_info("RUN")).state.messages == 0

    await until(so, why="it has failed, is settled, and its ticket is gone")


@pytest.fixture
def fatal(monkeypatch: pytest.MonkeyPatch) -> list[e.Event]:
    """Folding an injected note ends whoever does it; here is every such end."""
    folded: list[e.Event] = []

    def kill(_: Any, event: e.Event) -> dict[str, Any]:
        folded.append(event)
        raise Killed

    monkeypatch.setitem(folding._CHANGES, e.ContextInjected, ((0, {}, kill),))
    return folded


async def test_a_job_whose_fold_kills_its_holder_is_given_up_unfolded(platform: ExecutorPlatform, fatal: list[e.Event]):
    async with ChatServer(lambda _: Say(text="done")) as chat:
        await poisoned(platform, "poison")
        await platform.executor(chat)
        await platform.begin("neighbour")
        await given_up(platform, "poison")
        assert (await platform.wait_for("neighbour")).status == "completed"

    claims = await platform.events_of("poison", e.JobClaimed)
    # The first after the claim in the log dies before it has claimed; from then on each claims before it folds.
    assert [claim.attempt for claim in claims] == [1, 2, 3, 4, 5, 6]
    assert len(fatal) == CLAIMS_MAX
    assert (await types(platform, "poison"))[-2:] == ["job.claimed", "job.failed"]
    letter = await platform.bus.js.get_msg("DEAD", 1)
    assert (letter.headers or {})[h.DEAD_CODE] == CRASH_LOOP


async def test_a_given_up_job_keeps_its_reservation(platform: ExecutorPlatform, fatal: list[e.Event]):
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await poisoned(platform, "poison", attempt=CLAIMS_MAX)
        await platform.executor(chat)
        await given_up(platform, "poison")

    assert fatal == []
    assert [(one.job_id, one.cost_usd) for one in platform.budgets.of(SettleJob)] == [("poison", None)]


async def test_a_log_that_kills_its_readers_is_given_up(platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch):
    present = (await platform.bus.js.consumer_info("RUN", "interactive")).config
    await platform.bus.js.add_consumer("RUN", present.evolve(ack_wait=0.4))
    reads: list[str] = []

    async def kill(self: JobLog, upto: int | None = None) -> Any:
        reads.append(self.job_id)
        raise Killed

    async with ChatServer(lambda _: Say(text="never")) as chat:
        await poisoned(platform, "poison")
        monkeypatch.setattr(JobLog, "records", kill)
        await platform.executor(chat)
        await until(lambda: platform.budgets.of(SettleJob), why="it is settled")

    monkeypatch.undo()
    # Nothing tells the first ones from a ticket that was given back; then each claims before it reads.
    assert len(reads) == SILENT_MAX + CLAIMS_MAX - 1
    assert (await types(platform, "poison"))[4:] == ["job.claimed"] * CLAIMS_MAX + ["job.failed"]


async def test_a_temporarily_unreadable_log_is_not_given_up(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    """Its holder before left a claim and died, so each claims before it reads; who then cannot read is not dead."""
    real, tries = JobLog.records, count(1)

    async def records(self: JobLog, upto: int | None = None) -> Any:
        if next(tries) <= CLAIMS_MAX + 1:
            raise Unavailable("the bus", after_s=0.05)
        return await real(self, upto)

    async with ChatServer(lambda _: Say(text="done")) as chat:
        head = await platform.begin("away", ticket=False)
        await platform.claimed("away", head, owner=f"{await platform.ticket('away', head)}:0")
        monkeypatch.setattr(JobLog, "records", records)
        await platform.executor(chat)
        await until(lambda: platform.budgets.of(SettleJob), why="it is settled")

    monkeypatch.undo()
    assert (await platform.job("away")).life.status == "completed"


async def test_a_job_with_temporarily_unreadable_signals_is_not_given_up(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    real, tries = signals.newest, count(1)

    async def newest(bus: Bus, tenant: str, job_id: str) -> int:
        if next(tries) <= 2 * CLAIMS_MAX:
            raise Unavailable("the bus", after_s=0.05)
        return await real(bus, tenant, job_id)

    monkeypatch.setattr(signals, "newest", newest)
    async with ChatServer(lambda _: Say(text="done")) as chat:
        await platform.executor(chat)
        await platform.begin("away")

        assert (await platform.wait_for("away")).status == "completed"


class Newer(e.Event):
    """An event that this build does not know."""

    type: str = "job.foreseen"


async def test_a_build_unable_to_read_a_log_never_gives_it_up(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    """Its holder before had claimed it and died: this one claims before it reads, and takes that back."""
    monkeypatch.setattr(run_tickets, "UNKNOWN_RETRY_S", 0.1)
    async with ChatServer(lambda _: Say(text="never")) as chat:
        head = await platform.begin("newer", ticket=False)
        log = JobLog(platform.bus, "default", "newer")
        head = await log.append([Newer(**stamp("newer", 3))], head)
        sequence = await platform.ticket("newer", head)
        await platform.claimed("newer", head, owner=f"{sequence}:0")
        await platform.executor(chat)

        async def offered() -> int:
            return (await platform.bus.js.consumer_info("RUN", "interactive")).delivered.consumer_seq

        async def often() -> bool:
            return await offered() >= 4

        await until(often, why="its ticket has come again and again")
        last = await log.last()

    assert last is not None and (last.state, last.attempt) == (State.ACTIVE, 1)
    assert [value["type"] for value in last.values] == ["job.handed_back"]
    records = [[value["type"] for value in record] for record in await log.records()]
    assert records[2:] == [["job.claimed"], ["job.claimed"], ["job.handed_back"]]


async def test_a_given_up_job_is_settled_without_folding_its_log(platform: ExecutorPlatform, fatal: list[e.Event]):
    """The executor that gave it up died before it had put the ticket aside."""
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await poisoned(platform, "poison", attempt=CLAIMS_MAX)
        log = JobLog(platform.bus, "default", "poison")
        head = await log.last()
        assert head is not None
        failed = e.JobFailed(**stamp("poison", 5), error=Failure(code=CRASH_LOOP, message=GIVEN_UP))
        await log.append([failed], head)
        await platform.executor(chat)
        await given_up(platform, "poison")

    assert fatal == []
    assert [one.cost_usd for one in platform.budgets.of(SettleJob)] == [None]
    letter = await platform.bus.js.get_msg("DEAD", 1)
    assert (letter.headers or {})[h.DEAD_CODE] == CRASH_LOOP


async def test_a_given_up_jobs_open_calls_are_settled_first(platform: ExecutorPlatform):
    asked: list[VoidTool] = []

    async def on_void(void: VoidTool) -> ToolReply:
        asked.append(void)
        return ToolReply(status="success", content="paid", cost_usd=Decimal("0.01"))

    await platform.answer(Ask(VoidTool, on_void))
    head = await platform.begin("killer", ticket=False)
    owner = f"{await platform.ticket('killer', head)}:0"
    claim = e.JobClaimed(**stamp("killer", 3), executor="gone", epoch=1, owner=owner, attempt=1)
    calls = [
        e.ToolRequested(
            **stamp("killer", 4 + n),
            step=1,
            call=str(n),
            tool="bank__pay",
            arguments={"n": n},
            effect=Effect.ONCE,
            key=f"default/killer/1/{n}",
        )
        for n in (0, 1)
    ]
    done = e.ToolCompleted(**stamp("killer", 6), step=1, call="0", tool="bank__pay", status="success")
    log = JobLog(platform.bus, "default", "killer")
    head = await log.append([claim, *calls, done], head, owner=owner, attempt=1, epoch=1)
    # Holders that came to nothing since.
    last = e.JobClaimed(**stamp("killer", 7), executor="gone", epoch=2, owner=owner, attempt=CLAIMS_MAX)
    await log.append([last], head, owner=owner, attempt=CLAIMS_MAX, epoch=2)
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await platform.executor(chat)
        await given_up(platform, "killer")

    *_, completed, failed = await platform.events("killer")
    assert [void.key for void in asked] == ["default/killer/1/1"]
    assert isinstance(completed, e.ToolCompleted)
    assert (completed.call, completed.status, completed.cost_usd) == ("1", "success", Decimal("0.01"))
    assert isinstance(failed, e.JobFailed)
    assert (failed.error.code, failed.cost_usd) == (CRASH_LOOP, Decimal("0.01"))
