"""One job's log, told event by event: what it makes of the tables.

The `Job` is the fold that everybody shares; beside it stand the spans, steps and ledger entries that only tracing
needs. Everything comes from the events alone, so telling the same log again makes the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.journal import Job, evolve
from wayline.tracing.drawing import Canvas, draw
from wayline.tracing.facts import Fact
from wayline.tracing.rows import JobRow, Rows, SpanRow, as_json, clean, model_json


@dataclass
class Chapter:
    """What the newest events of a job changed."""

    rows: Rows = field(default_factory=Rows)
    facts: list[Fact] = field(default_factory=list)
    closed: list[SpanRow] = field(default_factory=list)
    """The spans that ended."""


class Story:
    """A job as far as its log was read."""

    def __init__(self, tenant: str, job_id: str) -> None:
        self.tenant = tenant
        self.job_id = job_id
        self.trace_id = ids.trace_id(tenant, job_id)
        self.job = Job(tenant=tenant, job_id=job_id)
        self._canvas = Canvas(tenant, job_id)

    @property
    def seq(self) -> int:
        return self.job.seq

    @property
    def at_rest(self) -> bool:
        """Whether nothing is to come for now: it need not be kept in memory."""
        return self.job.ended is not None or self.job.waiting is not None

    def tell(self, event: e.Event) -> None:
        """Take in the next event; one that was told already changes nothing."""
        if event.seq <= self.seq:
            return
        draw(self._canvas, event, self.job)
        self.job = evolve(self.job, event)

    def skip(self) -> None:
        """What was told so far is in the tables already."""
        self._canvas.rest()

    def chapter(self) -> Chapter:
        """What changed since the last chapter."""
        canvas, job = self._canvas, self._job_row()
        spans = [span.row(tenant=self.tenant, trace_id=self.trace_id) for span in canvas.spans.values()]
        rows = Rows(
            jobs=[job],
            steps=[step.row(tenant=self.tenant, job_id=self.job_id) for step in canvas.steps.values()],
            ledger=[
                entry.row(
                    tenant=self.tenant,
                    job_id=self.job_id,
                    agent=job.agent,
                    user_id=job.user_id,
                    session_id=job.session_id,
                )
                for entry in canvas.entries.values()
            ],
            spans=spans,
        )
        told = Chapter(rows, canvas.facts, [span for span in spans if span.duration_ms is not None])
        canvas.rest()
        return told

    def _job_row(self) -> JobRow:
        """What `view` shows of the job, without making the models of it only to take them apart."""
        job = self.job
        submitted, route, error = job.submitted, job.route, job.error
        done = job.ended if isinstance(job.ended, e.JobCompleted) else None
        return JobRow(
            tenant=self.tenant,
            job_id=self.job_id,
            seq=job.seq,
            trace_id=self.trace_id,
            status=job.status.value,
            agent=clean(submitted.agent) if submitted else "",
            agent_version=job.agent_version,
            session_id=_clean(submitted.session_id) if submitted else None,
            user_id=_clean(submitted.user_id) if submitted else None,
            provider=route.provider if route else None,
            model=route.model if route else None,
            tier=route.tier if route else None,
            route_reason=clean(route.reason) if route else None,
            estimated_cost_usd=route.estimated_cost_usd if route else None,
            steps=job.step,
            usage=model_json(job.usage),
            tokens=job.usage.total,
            cost_usd=job.cost_usd,
            costs=model_json(job.costs),
            answer=_clean(done.answer) if done else None,
            partial=done.partial if done else False,
            reason=_clean(job.reason),
            citations=as_json([citation.model_dump() for citation in done.citations]) if done else "[]",
            error_code=error.code if error else None,
            error_message=clean(error.message) if error else None,
            waiting_for=as_json(job.waiting.model_dump(mode="json")) if job.waiting else None,
            # The first event's time where the submission itself could not be read.
            created_at=job.created_at or self._canvas.root.start,
            ended_at=job.ended_at,
            input=clean(submitted.beginning()) if submitted else None,
        )


def _clean(text: str | None) -> str | None:
    return None if text is None else clean(text)
