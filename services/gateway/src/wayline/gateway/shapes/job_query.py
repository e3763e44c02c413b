"""What a list of jobs may be asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from wayline.contracts import ids
from wayline.contracts.feedback import FeedbackIs
from wayline.contracts.ids import JobId
from wayline.contracts.jobs import TAGS_MAX, Lane, Status, Tag
from wayline.contracts.knowledge import DOCUMENT_ID_PATTERN
from wayline.contracts.money import Dollars
from wayline.contracts.traces import QUERY_MAX, JobOrder, ListJobs
from wayline.gateway.shapes.body import ONE_LINE

YEARS_END = 9_000
IDS_MAX = 200
"""In one request: as many as a page holds."""

Line: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=ONE_LINE)]
Short: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=ONE_LINE)]


def _moment(at: datetime) -> datetime:
    """Return a moment in UTC, which it is where it names no offset; no year that Postgres or an offset would refuse."""
    if not 1970 <= at.year < YEARS_END:
        raise ValueError(f"a moment is of a year from 1970 to {YEARS_END - 1}")
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


Moment: TypeAlias = Annotated[datetime, AfterValidator(_moment)]
WaitCause: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,32}$")]


class JobFilter(BaseModel):
    """Conditions that jobs meet, all of them; what can be given several times is met by any of its values."""

    q: Annotated[str, StringConstraints(min_length=1, max_length=QUERY_MAX, pattern=ONE_LINE)] | None = Field(
        default=None,
        description="The beginning of an id; or words, each by its beginning, of the input, the answer or the error. "
        "Jobs that have not ended are found by the beginning of their input.",
    )
    status: list[Status] = Field(default=[], max_length=10)
    agent: list[Line] = Field(default=[], max_length=50)
    version: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="Only jobs of this version of their agent."
    )
    label: str | None = Field(
        default=None, pattern=ids.NAME_PATTERN, description="Only jobs whose version was chosen by this label."
    )
    fingerprint: str | None = Field(
        default=None, pattern=r"^[0-9a-f]{16}$", description="Only jobs that failed of this cause."
    )
    schedule: str | None = Field(
        default=None, pattern=ids.NAME_PATTERN, description="Only jobs that this schedule submitted."
    )
    session_id: Line | None = Field(default=None, description="Only jobs of this session.")
    user_id: Line | None = Field(default=None, description="Only jobs of this user.")
    model: Line | None = Field(default=None, description="A model, or `provider/model`.")
    tier: Short | None = None
    lane: Lane | None = None
    error_code: Short | None = None
    waiting_for: list[WaitCause] = Field(
        default=[], max_length=10, description="Only parked jobs: what they wait for, such as `approval` or `budget`."
    )
    tool: Line | None = Field(default=None, description="Only jobs that called this tool.")
    tag: list[Tag] = Field(default=[], max_length=TAGS_MAX, description="Several: only jobs that have all of them.")
    cites: str | None = Field(
        default=None,
        pattern=DOCUMENT_ID_PATTERN,
        description="The id of a document: only jobs whose answer rests on passages of it.",
    )
    parent: Line | None = Field(
        default=None, description="Only jobs that this one started; `none`: only those that no job started."
    )
    origin: Line | None = Field(default=None, description="Only jobs that branched off this one.")
    since: Moment | None = Field(default=None, description="Only jobs accepted then or later.")
    until: Moment | None = Field(default=None, description="Only jobs accepted before.")
    cost_min: Dollars | None = Field(default=None, description="USD; a job of unknown cost is in no range.")
    cost_max: Dollars | None = None
    seconds_min: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="From acceptance to the end, or until now."
    )
    seconds_max: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    feedback: FeedbackIs | None = Field(
        default=None,
        description="What was thought of it: `up` is a mean score of 0.5 or more, `down` one below; `none`: "
        "nothing was said; `any`: something was, also without a score.",
    )
    score_min: float | None = Field(default=None, ge=0, le=1, description="The mean score of its feedback.")
    score_max: float | None = Field(default=None, ge=0, le=1)

    def asked(self, tenant: str, *, user_id: str | None) -> ListJobs:
        """Return the question that tracing answers. One value goes as it always did, for a tracing before this one."""
        given = self.model_dump(exclude={"status", "agent", "tag", "waiting_for", "user_id", "version", "label", "id"})
        one_status = self.status[0] if len(self.status) == 1 else None
        one_agent = self.agent[0] if len(self.agent) == 1 else None
        return ListJobs(
            **given,
            tenant=tenant,
            user_id=user_id,
            status=one_status,
            statuses=() if one_status else tuple(self.status),
            agent=one_agent,
            agents=() if one_agent else tuple(self.agent),
            tags=tuple(self.tag),
            waiting_for=tuple(self.waiting_for) or None,
            agent_version=self.version,
            agent_label=self.label,
        )


class JobQuery(JobFilter):
    """A page of the jobs that meet the conditions."""

    id: list[JobId] = Field(
        default=[], max_length=IDS_MAX, description="Only these jobs, as lists show them. Repeat it for each."
    )
    limit: int = Field(default=50, ge=1, le=200)
    cursor: str | None = Field(
        default=None, max_length=500, pattern=ONE_LINE, description="`next_cursor` of the page before."
    )
    sort: JobOrder = Field(default="newest", description="`slowest`: only jobs that have ended.")
    facets: bool = Field(default=False, description="Count them by status, agent and model, too.")

    def asked(self, tenant: str, *, user_id: str | None) -> ListJobs:
        """Return the question that tracing answers."""
        asked = super().asked(tenant, user_id=user_id)
        return asked.model_copy(update={"job_ids": tuple(self.id)}) if self.id else asked
