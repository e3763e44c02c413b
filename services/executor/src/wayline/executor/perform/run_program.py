"""Runs the program of a `run_code` call: each call in it is a tool call like any other, and only its end is shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

import structlog

from wayline.chassis import Failpoint, stopped
from wayline.contracts import events as e
from wayline.contracts.chat import ToolCall
from wayline.contracts.errors import Reject, Retry
from wayline.contracts.tools import ToolReply
from wayline.executor.decide.actions import RunProgram, SettleCalls
from wayline.executor.decide.approvals import MAY_RUN, ApprovalState, stands
from wayline.executor.decide.open_calls import begun_calls, in_order
from wayline.executor.hold.held_job import Cancelled, HandBack
from wayline.executor.hold.log_writer import Draft, draft
from wayline.executor.perform.approvals import denied, failed, requested
from wayline.executor.perform.job_run import JobRun
from wayline.executor.perform.tool_calls import (
    RepeatedResult,
    call_tool,
    ended,
    intend,
    noted_result,
    settle_calls,
)
from wayline.executor.prompt.programs import (
    CHANGED,
    WITHDRAWN,
    answer_of,
    code_calls,
    code_of,
    refused,
    reply_of,
    stubs_of,
)
from wayline.journal import Call, Job, stranger_of
from wayline.sandbox import (
    Completed,
    Diverged,
    Failed,
    Program,
    ProgramCall,
    Recording,
    SnapshotOwner,
    Suspended,
    Turn,
    rerun,
)
from wayline.telemetry import metrics

log = structlog.get_logger()

CALLS_AT_ONCE_MAX = 16
"""Of one program; the others wait for these."""


async def run_program(run: JobRun, action: RunProgram) -> Iterable[Draft]:
    """Take a program as far as it goes: to its end, to a call that waits for a person, or to the drain."""
    call = intend(run, action.call)
    await run.writer.append(Failpoint.EXECUTOR_INTENT_BEFORE, Failpoint.EXECUTOR_INTENT_AFTER)
    program = _Running(run, call)
    try:
        await run.held.listening(program.go(), seconds=run.held.seconds_left)
    except Cancelled:
        # What is still open is settled next.
        return ()
    except TimeoutError:
        return await settle_calls(run, SettleCalls(begun_calls(run.writer.job), "timeout"))
    except HandBack:
        await program.suspend()
        raise
    except Diverged as error:
        log.error("program diverged", job=run.writer.job.job_id, step=run.writer.job.model.step, why=str(error))
        return await program.diverged(error)
    return program.end()


class _Running:
    """A program, the turn it has come to, and its calls under way."""

    def __init__(self, run: JobRun, call: Call) -> None:
        job = run.writer.job
        assert job.code.began_at is not None and call.key is not None
        self._run = run
        self._call = call
        self._step = job.model.step
        self._owner = SnapshotOwner(job.tenant, job.job_id, self._step, call.wanted.call)
        text, stubs = code_of(call.meant), stubs_of(job)
        self._program = Program(text, stubs, now=job.code.began_at, seed=call.key, tenant=job.tenant)
        self._turn: Turn | None = None
        self._calling: dict[asyncio.Task[ToolReply | RepeatedResult], Call] = {}
        self._since_s = time.monotonic()

    async def go(self) -> None:
        """Run to the program's end, or to where only people can help."""
        try:
            self._turn = await self._begin()
            while isinstance(self._turn, Suspended):
                denied = await self._call_ready(self._turn)
                if not self._calling and not denied:
                    # Every call that is left waits for a person.
                    return await self.suspend()
                answered = denied or await self._results()
                answers = [(self._number(done), answer_of(done)) for done in answered]
                if answers:
                    self._turn = await self._run.services.sandbox.resume(self._program, self._turn, answers)
            while self._calling:
                # The program gave these up; they act all the same, and their ends are recorded.
                await self._results()
        finally:
            await stopped(*self._calling)
            for task, call in self._calling.items():
                if not task.cancelled() and task.exception() is None:
                    self._note(call, task.result())

    async def _begin(self) -> Turn:
        """Return where the log says that the program is: from its snapshot, else from its beginning."""
        job = self._run.writer.job
        calls = [
            ProgramCall(self._number(call), call.meant.tool, call.meant.arguments) for call in job.code.program_calls
        ]
        recorded = [job.code.call(name) for name in job.code.outcomes]
        answers = [(self._number(call), answer_of(call)) for call in recorded if call]
        begin = await self._snapshot()
        if calls:
            metrics.programs_resumed.labels("snapshot" if begin else "recording").inc()
        return await rerun(
            self._run.services.sandbox,
            self._program,
            Recording({call.number: call for call in calls}, answers),
            begin=begin,
        )

    async def _snapshot(self) -> Suspended | None:
        suspended = self._run.writer.job.code.suspended
        if suspended is None:
            return None
        try:
            return await self._run.services.snapshots.get(suspended.snapshot, self._program, self._owner)
        except (Reject, Retry) as error:
            log.warning("program runs again", job=self._owner.job_id, step=self._step, why=str(error))
            return None

    async def _call_ready(self, turn: Suspended) -> list[Call]:
        """Write the questions and intents of calls, then begin those that may; return those that were denied.

        Results that were noted before share their record.
        """
        calls = self._waiting(turn)
        asks = self._ask([call for call, how in calls if how is ApprovalState.NEEDED])
        results = bool(self._run.writer.job.code.outcomes)
        denied = [self._denied(call) for call, how in calls if how is ApprovalState.DENIED]
        ready = [intend(self._run, call, program=self._call.wanted.call) for call in self._may_begin(calls)]
        # A cancel may end this step, but not half an append: whether the record is in must be known.
        await asyncio.shield(self._run.writer.append(*_points(asks=asks, results=results)))
        for call in ready:
            self._calling[asyncio.ensure_future(self._made(call))] = call
        return denied

    async def _made(self, call: Call) -> ToolReply | RepeatedResult:
        came = await call_tool(self._run, call)
        # Its functions are the tools that the model knows: none of them can be one that has to be found.
        return came if isinstance(came, ToolReply | RepeatedResult) else refused(CHANGED)

    def _waiting(self, turn: Suspended) -> list[tuple[Call, ApprovalState]]:
        """Return the calls that the program waits for and that are not under way, and how each stands."""
        job = self._run.writer.job
        under_way = {call.wanted.call for call in self._calling.values()}
        named = [(job.code.named(asked.number), asked) for asked in turn.pending]
        calls = [job.code.call(name) or _as_call(asked, name) for name, asked in named if name not in under_way]
        return [(call, stands(job, call)) for call in calls]

    def _may_begin(self, calls: list[tuple[Call, ApprovalState]]) -> list[Call]:
        """Return the calls for which there is room now; in order, none goes before one that waits for a person."""
        job = self._run.writer.job
        assert job.routing.config is not None
        free = [call for call, how in calls if how in MAY_RUN]
        if job.routing.config.tools_in_order and calls and calls[0][1] not in MAY_RUN:
            return []
        room = 1 if in_order(job, [*self._calling.values(), *free]) else CALLS_AT_ONCE_MAX
        return free[: max(0, room - len(self._calling))]

    def _ask(self, calls: list[Call]) -> bool:
        """Note the question whether each of these calls may be made; return whether there is one."""
        for call in calls:
            definition = self._run.writer.job.tools.definition(call.meant.tool)
            self._run.writer.note_all([requested(self._run, call, definition, program=self._call.wanted.call)])
        return bool(calls)

    def _denied(self, call: Call) -> Call:
        """Return a call that nobody approved with its end, noted."""
        self._run.writer.note_all([denied(self._run.writer.job, call)])
        return self._noted(call)

    def _noted(self, call: Call) -> Call:
        noted = self._run.writer.job.code.call(call.wanted.call)
        assert noted is not None
        return noted

    async def _results(self) -> list[Call]:
        """Note the calls that end next, and return those whose outcome is known."""
        done, _ = await asyncio.wait(self._calling, return_when=asyncio.FIRST_COMPLETED)
        found = []
        for task in done:
            call = self._calling.pop(task)
            self._note(call, task.result())
            noted = self._run.writer.job.code.call(call.wanted.call)
            if noted is not None and noted.done is not None:
                found.append(noted)
        return found

    def _note(self, call: Call, came: ToolReply | RepeatedResult) -> None:
        self._run.writer.note_all(noted_result(self._run, self._step, call, came, program=self._call.wanted.call))

    def _number(self, call: Call) -> int:
        return self._run.writer.job.code.number(call.wanted.call)

    async def suspend(self) -> None:
        """Store where the program waits and note it; without room for it the program runs again from its results."""
        if not isinstance(self._turn, Suspended):
            return
        try:
            name = await self._run.services.snapshots.put(self._turn, self._program, self._owner)
        except Retry as error:
            log.warning("no snapshot", job=self._owner.job_id, step=self._step, why=str(error))
            return
        code = self._run.writer.job.code
        self._run.writer.note(
            e.CodeSuspended,
            self._call.span,
            step=self._step,
            call=self._call.wanted.call,
            snapshot=name,
            program=self._program.hash,
            pending=tuple(code.named(call.number) for call in self._turn.pending),
        )

    def end(self) -> tuple[Draft, ...]:
        """Return the end of the program; none where a person is to decide first."""
        if any(call.undecided for call in self._run.writer.job.code.program_calls):
            return ()
        if isinstance(self._turn, Completed):
            return self._ended("completed", reply_of(self._turn))
        return self._ended(self._turn.reason, reply_of(self._turn)) if isinstance(self._turn, Failed) else ()

    async def diverged(self, error: Diverged) -> Iterable[Draft]:
        """Settle what the program has begun, and end it."""
        calls = tuple(call for call in self._run.writer.job.code.program_calls if call.key and call.done is None)
        settled = await settle_calls(self._run, SettleCalls(calls, "diverged")) if calls else ()
        self._run.writer.note_all(settled)
        return self._ended("diverged", reply_of(Failed("stopped", str(error))))

    def _withdraw(self) -> None:
        """Note the end of calls whose approval the program does not wait for any more."""
        job = self._run.writer.job
        waiting = (call for call in job.code.program_calls if call.done is None and call.key is None)
        self._run.writer.note_all([failed(job, call, "cancelled", WITHDRAWN) for call in waiting])

    def _ended(self, status: str, reply: ToolReply) -> tuple[Draft, ...]:
        self._withdraw()
        job = self._run.writer.job
        took_ms = (time.monotonic() - self._since_s) * 1_000
        named = {"step": self._step, "call": self._call.wanted.call}
        reply = reply.model_copy(update={"duration_ms": took_ms, "strangers": heard_strangers(job)})
        return (
            draft(e.CodeCompleted, self._call.span, **named, status=status, calls=code_calls(job)),
            ended(self._run, self._step, self._call, reply),
        )


def heard_strangers(job: Job) -> bool:
    """Return whether strangers told a program's calls anything: it may be in all that the program says."""
    return any(stranger_of(job, call.done) for call in job.code.program_calls if call.done is not None)


def _as_call(asked: ProgramCall, name: str) -> Call:
    return Call(ToolCall(call=name, tool=asked.tool, arguments=asked.arguments))


def _points(*, asks: bool, results: bool) -> tuple[Failpoint, Failpoint]:
    if asks:
        return Failpoint.EXECUTOR_APPROVAL_BEFORE, Failpoint.EXECUTOR_APPROVAL_AFTER
    if results:
        return Failpoint.EXECUTOR_CODE_RESULT_BEFORE, Failpoint.EXECUTOR_CODE_RESULT_AFTER
    return Failpoint.EXECUTOR_CODE_INTENT_BEFORE, Failpoint.EXECUTOR_CODE_INTENT_AFTER
