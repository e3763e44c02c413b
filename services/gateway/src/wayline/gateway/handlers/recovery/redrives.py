"""Failed jobs by cause, and going on with all that failed of one: once each, written down, no more than asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from typing import Any

from wayline.chassis import Failpoint, reach
from wayline.contracts import headers as h
from wayline.contracts import ids
from wayline.contracts.errors import NotFound, Reject, Retry
from wayline.contracts.jobs import Fork, JobView, Status, SubmitJob
from wayline.contracts.traces import JobPage, ListJobs
from wayline.gateway.adapters.dead_letters import DeadLetters
from wayline.gateway.errors import JobIdConflict
from wayline.gateway.handlers.recovery.time_travel import forked, read_values
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.handlers.shared.submit_job import submit
from wayline.gateway.keys import Caller
from wayline.gateway.paging import after_moment, first_page, moment_key
from wayline.gateway.rates import NO_RATES
from wayline.gateway.shapes.dead_letters import DeadLetterBody
from wayline.gateway.shapes.redrives import (
    FailureGroup,
    PastRedrive,
    Redrive,
    RedriveBody,
    RedriveList,
    RedrivenJob,
    RedrivenLetter,
)
from wayline.gateway.shapes.time_travel import ForkBody
from wayline.journal import JobLog, branch

PAGE = 200
SUBMITTED = "SUBMIT"
"""The stream of submissions: the one whose messages may be sent again, because a job is written once."""
GROUPED_MAX = 2_000
"""Of the newest failed jobs: older ones are in no group."""
LOOKED_AT_MAX = 5_000
"""Failed jobs of one cause, the newest first, that one redrive looks at."""


@dataclass(frozen=True)
class Redrives:
    """What one caller may do about the failed jobs of their tenant."""

    gateway: Gateway
    caller: Caller

    async def groups(self) -> list[FailureGroup]:
        """Return the failed jobs that go on in no redrive, and the dead letters, by cause; the most frequent first."""
        found: dict[str, FailureGroup] = {}
        failed = [job async for job in self._failed(None, most=GROUPED_MAX)]
        redriven = await self._redriven_of([job.job_id for job in failed])
        for job in failed:
            if job.fingerprint is None or job.error is None or job.job_id in redriven:
                continue
            group = found.get(job.fingerprint) or FailureGroup(
                fingerprint=job.fingerprint,
                code=job.error.code,
                message=job.error.message,
                example=job.job_id,
                last_at=job.ended_at,
            )
            found[job.fingerprint] = group.model_copy(update={"jobs": group.jobs + 1, "first_at": job.ended_at})
        letters = await self._letters.page(limit=GROUPED_MAX, before=None)
        for letter in letters.dead_letters:
            group = found.get(letter.fingerprint) or FailureGroup(
                fingerprint=letter.fingerprint, code=letter.code, message=letter.reason, last_at=letter.at
            )
            found[letter.fingerprint] = group.model_copy(update={"letters": group.letters + 1})
        return sorted(found.values(), key=lambda group: (-group.jobs, -group.letters, group.fingerprint))

    async def redrive(self, body: RedriveBody) -> Redrive:
        """Let every job that failed of one cause go on from its failed step, as a fork whose id follows from its own.

        Submissions of the cause that became no job are submitted again; they count against the limit as well.

        A job that was redriven before is not redriven again, and does not count against the limit: so the same redrive
        again reaches the jobs behind it. Who asked is written down before the first fork begins.
        """
        failed = [job.job_id async for job in self._failed(body.fingerprint, most=LOOKED_AT_MAX)]
        letters = await self._letters.of_cause(body.fingerprint)
        if not failed and not letters:
            raise NotFound("failed job or dead letter with fingerprint", body.fingerprint)
        number = None if body.dry_run else await self._begin(body.fingerprint, len(failed) + len(letters))
        outcomes: list[RedrivenJob] = []
        stopped, left = None, body.limit
        for job_id in failed:
            if left == 0:
                break
            try:
                outcomes.append(await self._redriven(job_id, dry_run=body.dry_run))
            except Retry as error:
                stopped = str(error)
                break
            left -= outcomes[-1].outcome == "forked"
        sent: list[RedrivenLetter] = []
        for letter in letters:
            if left == 0 or stopped is not None:
                break
            try:
                sent.append(await self._resubmitted(letter, dry_run=body.dry_run))
            except Retry as error:
                stopped = str(error)
                break
            left -= sent[-1].outcome == "resubmitted"
        if number is not None:
            await self._finish(number, [*(one.outcome for one in outcomes), *(one.outcome for one in sent)])
        return Redrive(
            fingerprint=body.fingerprint,
            dry_run=body.dry_run,
            jobs=tuple(outcomes),
            letters=tuple(sent),
            more=len(failed) + len(letters) > len(outcomes) + len(sent) or len(failed) == LOOKED_AT_MAX,
            stopped=stopped,
        )

    @property
    def _uncounted(self) -> Caller:
        """Return who lets jobs go on, without rates: each of these jobs was counted once already."""
        return replace(self.caller, rates=NO_RATES)

    @property
    def _letters(self) -> DeadLetters:
        return DeadLetters(self.gateway.bus, self.gateway.store, self.caller.tenant)

    async def _resubmitted(self, letter: DeadLetterBody, *, dry_run: bool) -> RedrivenLetter:
        """Submit the job of a dead letter again, once; refuse what is no submission. Raises Retry."""
        named: dict[str, Any] = {"sequence": letter.sequence, "subject": letter.subject}
        try:
            job = _job_of(letter, tenant=self.caller.tenant)
            named["job_id"] = job.job_id
            if await self._has_begun(job):
                return RedrivenLetter(**named, outcome="already")
            if not dry_run:
                await submit(self.gateway, job, own_id=True, key=None, caller=None, by=self._uncounted)
        except Reject as error:
            return RedrivenLetter(**named, outcome="refused", reason=str(error))
        if not dry_run:
            # A second redrive after a crash just before this finds the job's log.
            await self._letters.dismiss(
                letter.sequence, reason=f"redriven: submitted again as job {job.job_id}", by=self.caller.name
            )
        return RedrivenLetter(**named, outcome="resubmitted")

    async def past(self, *, limit: int, cursor: str | None) -> RedriveList:
        """Return who redrove what, newest first. Raises Reject for what is no cursor."""
        store, tenant = self.gateway.store, self.caller.tenant
        rows = await store.fetch(tenant, store.sql.list_redrives, tenant, limit + 1, *after_moment(cursor))
        found = [PastRedrive.model_validate(dict(row)) for row in rows]
        page = first_page(found, limit=limit, key=lambda one: moment_key(one.begun_at, one.redrive_id))
        return RedriveList(redrives=page.items, next_cursor=page.next_cursor)

    async def _failed(self, fingerprint: str | None, *, most: int) -> AsyncIterator[JobView]:
        cursor, seen = None, 0
        while seen < most:
            asked = ListJobs(
                tenant=self.caller.tenant,
                limit=min(PAGE, most - seen),
                cursor=cursor,
                status=Status.FAILED,
                fingerprint=fingerprint,
            )
            page = await self.gateway.bus.ask(asked, JobPage)
            for job in page.jobs:
                yield job
            seen, cursor = seen + len(page.jobs), page.next_cursor
            if cursor is None:
                return

    async def _redriven_of(self, job_ids: list[str]) -> set[str]:
        """Return those of some failed jobs that go on already, as forks of theirs."""
        forks = {redrive_id(self.caller.tenant, job_id): job_id for job_id in job_ids}
        found: set[str] = set()
        for wanted in batched(forks, PAGE):
            asked = ListJobs(tenant=self.caller.tenant, limit=PAGE, job_ids=wanted)
            while True:
                page = await self.gateway.bus.ask(asked, JobPage)
                found |= {forks[job.job_id] for job in page.jobs}
                if page.next_cursor is None:
                    break
                asked = asked.model_copy(update={"cursor": page.next_cursor})
        return found

    async def _redriven(self, job_id: str, *, dry_run: bool) -> RedrivenJob:
        """Fork one job. Raises Retry where no more can be submitted now."""
        tenant, fork_id = self.caller.tenant, redrive_id(self.caller.tenant, job_id)
        if await JobLog(self.gateway.bus, tenant, fork_id).last() is not None:
            return RedrivenJob(job_id=job_id, fork_id=fork_id, outcome="already")
        try:
            values = await read_values(self.gateway, tenant, job_id)
            job = self._fork(values, job_id, fork_id)
            after = branch(values, Fork(job_id=job_id)).origin.seq
            if not dry_run:
                reach(Failpoint.GATEWAY_REDRIVE_BEFORE)
                await submit(self.gateway, job, own_id=True, key=None, caller=None, by=self._uncounted)
                reach(Failpoint.GATEWAY_REDRIVE_AFTER)
        except Reject as error:
            return RedrivenJob(job_id=job_id, outcome="refused", reason=str(error))
        return RedrivenJob(job_id=job_id, fork_id=fork_id, after=after, outcome="forked")

    async def _has_begun(self, job: SubmitJob) -> bool:
        """Return whether a job has a log. Raises JobIdConflict where it is of another job."""
        head = await JobLog(self.gateway.bus, job.tenant, str(job.job_id)).last()
        if head is not None and head.content_hash != job.content_hash():
            raise JobIdConflict(job_id=str(job.job_id))
        return head is not None

    def _fork(self, values: list[dict[str, object]], job_id: str, fork_id: str) -> SubmitJob:
        return forked(values, Fork(job_id=job_id), tenant=self.caller.tenant, body=ForkBody(job_id=fork_id))

    async def _begin(self, fingerprint: str, jobs: int) -> str:
        store, number = self.gateway.store, ids.new_id("redrive")
        await store.execute(
            self.caller.tenant,
            store.sql.begin_redrive,
            self.caller.tenant,
            number,
            fingerprint,
            self.caller.name,
            jobs,
        )
        return number

    async def _finish(self, number: str, outcomes: list[str]) -> None:
        store = self.gateway.store
        begun = outcomes.count("forked") + outcomes.count("resubmitted")
        counts = [begun, outcomes.count("already"), outcomes.count("refused")]
        reach(Failpoint.GATEWAY_REDRIVEN_BEFORE)
        await store.execute(self.caller.tenant, store.sql.finish_redrive, self.caller.tenant, number, *counts)
        reach(Failpoint.GATEWAY_REDRIVEN_AFTER)


def batched(items: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    """Yield items in groups of a size, the last one with what is left."""
    rest = iter(items)
    while group := tuple(islice(rest, size)):
        yield group


def _job_of(letter: DeadLetterBody, *, tenant: str) -> SubmitJob:
    """Return the job that a dead letter asked for, under its own id or one that follows from the letter's place.

    Raises Reject for a message that must not be sent again as it is.
    """
    if letter.stream != SUBMITTED:
        raise Reject(
            f"a message of {letter.stream or 'no stream'} is not sent again from here: what it asked for may have "
            "changed since. Ask for it anew, then dismiss the letter",
            code="not_redrivable",
        )
    if h.CLAIMS in letter.headers or letter.text is None or letter.truncated:
        raise Reject("the letter does not hold the whole submission: submit the job anew", code="not_redrivable")
    job = SubmitJob.from_wire(letter.text.encode(), letter.subject)
    return (
        job
        if job.job_id is not None
        else job.model_copy(update={"job_id": redrive_id(tenant, f"letter/{letter.sequence}")})
    )


def redrive_id(tenant: str, job_id: str) -> str:
    """Return the id of a failed job's redrive: a second redrive of the job is the same fork."""
    return f"redrive_{sha256(f'{tenant}/{job_id}'.encode()).hexdigest()[:40]}"
