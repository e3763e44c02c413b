"""Projects one job's log, event by event, into rows of the tables.

The `Job` is the fold that all services share; beside it stand the spans, steps and ledger entries that only tracing
needs. Everything comes from the events alone, so projecting the same log again makes the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.chat import TextPart
from wayline.journal import Job, evolve, failure_fingerprint, plus
from wayline.tracing.job_metrics import Fact
from wayline.tracing.job_words import job_words
from wayline.tracing.projection import JobDrafts, apply_event
from wayline.tracing.rows import BeyondColumns, JobRow, Rows, SpanRow, as_json, clean, model_json, moment


@dataclass
class Changes:
    """What the newest events of a job changed."""

    rows: Rows = field(default_factory=Rows)
    facts: list[Fact] = field(default_factory=list)
    closed: list[SpanRow] = field(default_factory=list)
    """The spans that ended."""


class JobProjection:
    """A job as far as its log was read."""

    def __init__(self, tenant: str, job_id: str) -> None:
        self.tenant = tenant
        self.job_id = job_id
        self.trace_id = ids.trace_id(tenant, job_id)
        self.job = Job(tenant=tenant, job_id=job_id)
        self._drafts = JobDrafts(tenant, job_id)

    @property
    def seq(self) -> int:
        return self.job.seq

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is expected for now, so that it need not be kept in memory."""
        return self.job.life.ended is not None or self.job.life.waiting is not None

    def apply(self, event: e.Event) -> None:
        """Apply the next event; one that was applied already changes nothing."""
        if event.seq <= self.seq:
            return
        apply_event(self._drafts, event, self.job)
        self.job = evolve(self.job, event)

    def mark_stored(self) -> None:
        """Note that everything applied so far is in the tables already."""
        self._drafts.forget_changes()

    def take_changes(self) -> Changes:
        """Return what changed since the last call, and forget it."""
        drafts, job = self._drafts, self._job_row()
        spans = [span.row(tenant=self.tenant, trace_id=self.trace_id) for span in drafts.spans.values()]
        rows = Rows(
            jobs=[job],
            steps=[step.row(tenant=self.tenant, job_id=self.job_id) for step in drafts.steps.values()],
            ledger=[
                entry.row(
                    tenant=self.tenant,
                    job_id=self.job_id,
                    agent=job.agent,
                    user_id=job.user_id,
                    session_id=job.session_id,
                )
                for entry in drafts.entries.values()
            ],
            spans=spans,
        )
        changes = Changes(rows, drafts.facts, [span for span in spans if span.duration_ms is not None])
        drafts.forget_changes()
        return changes

    def _job_row(self) -> JobRow:
        """Make the job's row: what `view` shows, without building its models first."""
        job = self.job
        submitted, route, error = job.life.submitted, job.routing.route, job.life.error
        done = job.life.ended if isinstance(job.life.ended, e.JobCompleted) else None
        return JobRow(
            tenant=self.tenant,
            job_id=self.job_id,
            seq=job.seq,
            trace_id=self.trace_id,
            status=job.life.status.value,
            agent=clean(submitted.agent) if submitted else "",
            agent_version=job.routing.agent_version,
            session_id=_clean(submitted.session_id) if submitted else None,
            user_id=_clean(submitted.user_id) if submitted else None,
            provider=route.provider if route else None,
            model=route.model if route else None,
            tier=route.tier if route else None,
            route_reason=clean(route.reason) if route else None,
            estimated_cost_usd=route.estimated_cost_usd if route else None,
            steps=job.model.step,
            usage=model_json(job.money.usage),
            tokens=job.money.usage.total,
            cost_usd=job.money.cost_usd,
            costs=model_json(job.money.costs),
            answer=_clean(done.answer) if done else None,
            partial=done.partial if done else False,
            reason=_clean(job.life.reason),
            citations=as_json([citation.model_dump() for citation in done.citations]) if done else "[]",
            error_code=error.code if error else None,
            error_message=clean(error.message) if error else None,
            waiting_for=as_json(job.life.waiting.model_dump(mode="json")) if job.life.waiting else None,
            # The first event's time where the submission itself could not be read.
            created_at=job.life.created_at or self._drafts.root.start,
            ended_at=job.life.ended_at,
            input=clean(submitted.beginning()) if submitted else None,
            fingerprint=failure_fingerprint(job),
            schedule=as_json(job.life.schedule.model_dump(mode="json")) if job.life.schedule else None,
            lane=submitted.options.lane if submitted else "interactive",
            beyond=self._beyond(),
            tags=list(submitted.options.tags) if submitted and submitted.options.tags else None,
            words=self._words() if job.life.ended else None,
        )

    def _words(self) -> list[str]:
        """Return what the job is found by."""
        job = self.job
        submitted, done, error = job.life.submitted, job.life.ended, job.life.error
        told = (part.text for part in submitted.parts() if isinstance(part, TextPart)) if submitted else ()
        answer = done.answer if isinstance(done, e.JobCompleted) else None
        tags = submitted.options.tags or () if submitted else ()
        texts = [*told, answer, error.message if error else None]
        citations = done.citations if isinstance(done, e.JobCompleted) else ()
        cited = (clean(one.document_id) for one in citations if one.document_id)
        tools, label = sorted(self._drafts.tools), job.routing.agent_label
        return job_words(self.tenant, self.job_id, texts, tags=tags, tools=tools, cited=cited, label=label)

    def _beyond(self) -> str:
        """Return what `view` shows and no other column holds, as JSON."""
        job = self.job
        return model_json(
            BeyondColumns(
                route=job.routing.route,
                total_cost_usd=plus(job.money.cost_usd, job.family.children_usd),
                origin=job.life.origin,
                handed_to=job.session.handed_to,
                parent=job.family.parent,
                children=job.family.children,
                tainted_by=job.tools.taint,
                submitted_by=job.life.submitted_by,
                decisions=job.life.decisions,
                agent_label=job.routing.agent_label,
                decided_at=moment(job.life.decisions[-1].decided_at) if job.life.decisions else None,
            )
        )


def _clean(text: str | None) -> str | None:
    return None if text is None else clean(text)
