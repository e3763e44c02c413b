"""Forgetting a user, a subject or one job: what is asked of each store, and the receipt."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from wayline.contracts.base import Frozen, Request
from wayline.contracts.ids import JobId
from wayline.contracts.memory import SubjectRef

JOBS_AT_ONCE = 200
"""Jobs that a store is asked to erase in one request."""
SAMPLES_MAX = 20
"""Removed texts that are searched for at the end."""
SAMPLE_CHARS_MIN = 24
"""A shorter text is likely to be in other people's jobs, too."""
SAMPLE_CHARS_MAX = 120

UserId = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,200}$")]
ForgetId = Annotated[str, StringConstraints(pattern=r"^forget_[A-Za-z0-9_-]{1,64}$")]
Step = Literal["stopping", "erasing", "searching", "done"]


class Erased(Frozen):
    """What a store found of what it was asked for, by what it is: rows, files, passages."""

    counts: dict[str, int] = Field(
        default_factory=dict, description="What was erased, or is left where it was counted."
    )
    kept: dict[str, int] = Field(default_factory=dict, description="What stays, without any name in it.")


class _Erase(Request):
    """What a store is asked to erase; the same request again finds nothing."""

    user_id: UserId | None = Field(default=None, description="All that is of this user.")
    subject_ref: SubjectRef | None = Field(default=None, description="All that is remembered of this subject.")
    job_ids: tuple[JobId, ...] = Field(default=(), max_length=JOBS_AT_ONCE, description="All that is of these jobs.")
    count_only: bool = Field(default=False, description="Nothing is erased: it is counted what there is.")
    samples: tuple[str, ...] = Field(
        default=(), max_length=SAMPLES_MAX, description="Texts that are looked for in all rows of the tenant."
    )


class EraseFromGateway(_Erase, subject="erase.gateway.{tenant}", replies=Erased):
    """Erase accepted submissions and what their keys stand for."""


class EraseFromTracing(_Erase, subject="erase.tracing.{tenant}", replies=Erased):
    """Erase jobs, steps, spans and deliveries, and the names in the money ledger."""


class EraseFromRegistry(_Erase, subject="erase.registry.{tenant}", replies=Erased):
    """Erase tool calls with their results, and a user's logins."""


class EraseFromRetrieval(_Erase, subject="erase.retrieval.{tenant}", replies=Erased):
    """Erase documents of a user, what is remembered, and what jobs planned."""


class EraseFromNotifier(_Erase, subject="erase.notifier.{tenant}", replies=Erased):
    """Erase deliveries of webhooks."""


class StoreReceipt(Frozen):
    """What one store erased."""

    store: str = Field(description="`logs`, `router`, `gateway`, `tracing`, `retrieval`, `registry` or `notifier`.")
    counts: dict[str, int] = Field(description="What there was, by what it is. It is gone.")
    kept: dict[str, int] = Field(default_factory=dict, description="What stays, without any name in it.")
    erased_at: datetime | None = Field(default=None, description="When the last of it was erased.")


class Forgetting(Frozen):
    """How far a request to forget is, and what it erased."""

    forget_id: ForgetId
    what: Literal["user", "subject", "job"]
    step: Step = Field(description="`done`: the receipt is whole.")
    user_id: str | None = Field(default=None, description="None once it is done: the receipt names nobody.")
    subject_ref: SubjectRef | None = None
    job_id: str | None = None
    name_sha256: str = Field(description="Of the tenant, what is forgotten and its name: by it a receipt is proved.")
    asked_by: str = Field(default="", description="The name of the key.")
    asked_at: datetime
    done_at: datetime | None = None
    jobs: int = Field(default=0, description="Jobs that are erased whole.")
    jobs_erased: int = Field(default=0, description="Of these so far; they go in batches, through all stores.")
    waits_for: str | None = Field(default=None, description="What keeps it from going on, where it waits.")
    receipt: tuple[StoreReceipt, ...] = ()
    left: dict[str, int] | None = Field(
        default=None, description="What the search at the end found, by store and kind; empty: 0 left. None: not yet."
    )
    may_remain: tuple[str, ...] = Field(default=(), description="What is beyond this installation's stores.")

    @property
    def is_done(self) -> bool:
        """Return whether nothing more will happen."""
        return self.step == "done"


class Forget(Request, subject="forget.begin.{tenant}", replies=Forgetting):
    """Forget a user, a subject or one ended job; where that is under way already, it is the same one."""

    user_id: UserId | None = None
    subject_ref: SubjectRef | None = None
    job_id: JobId | None = None
    of_user: UserId | None = Field(default=None, description="Only where the job is of this user.")
    asked_by: str = Field(default="", max_length=200)

    @model_validator(mode="after")
    def _names_one(self) -> Forget:
        if sum(one is not None for one in (self.user_id, self.subject_ref, self.job_id)) != 1:
            raise ValueError("name one of user_id, subject and job_id")
        return self


class GetForgetting(Request, subject="forget.get.{tenant}", replies=Forgetting):
    """Ask how far a request to forget is."""

    forget_id: ForgetId
    of_user: UserId | None = Field(default=None, description="Only where this user is forgotten.")
