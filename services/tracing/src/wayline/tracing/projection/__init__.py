"""What each event of a job's log makes of its spans, steps and ledger entries."""

from wayline.tracing.projection.apply import apply_event
from wayline.tracing.projection.job_drafts import JobDrafts

__all__ = ["JobDrafts", "apply_event"]
