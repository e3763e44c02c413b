"""What a table of costs may be asked for."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, Field

from wayline.contracts.budgets import TimeZone
from wayline.contracts.jobs import TAGS_MAX, Tag
from wayline.contracts.traces import CostGroup, GetCosts
from wayline.gateway.shapes.job_query import Line, Moment

_GROUPS = get_args(CostGroup)
_GROUP = f"({'|'.join(_GROUPS)})"


def _known(group_by: str) -> str:
    """Refuse an unknown grouping with the list of known ones, which is clearer than a pattern."""
    wrong = [name for name in group_by.split(",") if name not in _GROUPS]
    if wrong:
        raise ValueError(f"{wrong[0][:64]!r} is none of {', '.join(_GROUPS)}; several are joined by commas")
    return group_by


class CostQuery(BaseModel):
    """Which costs are meant, those that meet all conditions, and by what they are grouped."""

    group_by: Annotated[str, AfterValidator(_known)] = Field(
        default="model",
        json_schema_extra={"pattern": rf"^{_GROUP}(,{_GROUP}){{0,{len(_GROUPS) - 1}}}$"},
        description="Comma-separated.",
        examples=["model,day"],
    )
    tz: TimeZone = Field(default="UTC", description="Whose days and hours are meant: an IANA name.")
    since: Moment | None = Field(default=None, description="From when on; UTC where no offset is given.")
    until: Moment | None = Field(default=None, description="Only what was spent before.")
    agent: Line | None = None
    model: Line | None = Field(default=None, description="A model, or `provider/model`.")
    tool: Line | None = None
    user_id: Line | None = None
    session_id: Line | None = None
    job_id: Line | None = None
    tag: list[Tag] = Field(default=[], max_length=TAGS_MAX, description="Several: only of jobs that have all of them.")

    def asked(self, tenant: str) -> GetCosts:
        """Return the question that tracing answers."""
        groups: Any = tuple(dict.fromkeys(self.group_by.split(",")))
        given = self.model_dump(exclude={"group_by", "tag"})
        return GetCosts(**given, tenant=tenant, group_by=groups, tags=tuple(self.tag))
