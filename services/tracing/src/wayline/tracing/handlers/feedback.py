"""What is thought of jobs: kept, summed on the job, and exported as an event of its trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wayline.contracts.errors import NotFound
from wayline.contracts.feedback import (
    FEEDBACK_MAX,
    SCORES,
    Feedback,
    FeedbackList,
    FeedbackSummary,
    GiveFeedback,
    ListFeedback,
)
from wayline.store import Store
from wayline.tracing.errors import TooMuchFeedback
from wayline.tracing.rows import SpanRow
from wayline.tracing.views.feedback import feedback_span


class FeedbackHandlers:
    """Takes judgements; any replica takes any of them."""

    def __init__(self, store: Store, *, forward: Callable[[Sequence[SpanRow]], None] | None) -> None:
        self._store = store
        self._forward = forward

    async def on_give(self, given: GiveFeedback) -> Feedback:
        """Store what is said of a job, in place of what the same name said before. Raises NotFound, TooMuchFeedback."""
        sql, job = self._store.sql, (given.tenant, given.job_id)
        score = given.score if given.score is not None else SCORES.get(given.label or "")
        async with self._store.tenant(given.tenant) as conn:
            trace_id = await conn.fetchval(sql.judged_job, *job)
            if trace_id is None:
                raise NotFound("job", given.job_id)
            said = (given.by, given.key)
            if await conn.fetchval(sql.judgements_by_others, *job, *said) >= FEEDBACK_MAX:
                raise TooMuchFeedback(most=FEEDBACK_MAX)
            row = await conn.fetchrow(sql.put_feedback, *job, *said, score, given.label, given.comment)
            if row is None:
                return Feedback.model_validate(dict(await conn.fetchrow(sql.get_feedback, *job, *said) or {}))
            feedback = Feedback.model_validate(dict(row))
            span = feedback_span(*job, feedback, revision=row["revision"], trace_id=trace_id)
            await conn.execute(sql.put_spans, [span])
            await conn.execute(sql.sum_feedback, given.tenant, [given.job_id])
        if self._forward is not None:
            self._forward([span])
        return feedback

    async def on_list(self, asked: ListFeedback) -> FeedbackList:
        """Return what was said of a job. Raises NotFound."""
        sql, job = self._store.sql, (asked.tenant, asked.job_id)
        async with self._store.tenant(asked.tenant) as conn:
            known = await conn.fetchrow(sql.job, *job)
            if known is None:
                raise NotFound("job", asked.job_id)
            rows = await conn.fetch(sql.list_feedback, *job)
        summary = None if known["feedback"] is None else FeedbackSummary.model_validate(known["feedback"])
        return FeedbackList(feedback=tuple(Feedback.model_validate(dict(row)) for row in rows), summary=summary)
