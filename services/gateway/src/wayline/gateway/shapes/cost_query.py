"""What a table of costs may be asked for."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, Field

from wayline.contracts import ids
from wayline.contracts.budgets import TimeZone
from wayline.contracts.jobs import TAGS_MAX, Tag
from wayline.contracts.money import Usage
from wayline.contracts.traces import CostGroup, CostRow, CostTable, GetCosts
from wayline.gateway.shapes.csv_rows import csv_cell, csv_row
from wayline.gateway.shapes.job_query import Line, Moment

CostFormat = Literal["json", "csv"]
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
    version: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="Only of jobs of this version of their agent."
    )
    label: str | None = Field(
        default=None, pattern=ids.NAME_PATTERN, description="Only of jobs whose version was chosen by this label."
    )
    format: CostFormat = Field(default="json", description="`csv`: a table, with the total in its last row.")
    tag: list[Tag] = Field(default=[], max_length=TAGS_MAX, description="Several: only of jobs that have all of them.")

    def asked(self, tenant: str) -> GetCosts:
        """Return the question that tracing answers."""
        groups: Any = tuple(dict.fromkeys(self.group_by.split(",")))
        given = self.model_dump(exclude={"group_by", "tag", "version", "label", "format"})
        chosen = {"agent_version": self.version, "agent_label": self.label, "tags": tuple(self.tag)}
        return GetCosts(**given, **chosen, tenant=tenant, group_by=groups)


_FIGURES = tuple(name for name in CostRow.model_fields if name not in ("group", "usage"))


def as_csv(costs: CostTable, groups: tuple[str, ...]) -> bytes:
    """Return a table of costs as a file for a spreadsheet."""
    rows = [[*groups, *_FIGURES, *(f"usage.{name}" for name in Usage.model_fields)]]
    for one in (*costs.rows, *([costs.total] if costs.total else [])):
        values = one.model_dump(mode="json")
        named = [values["group"].get(name, "total") for name in groups]
        rows.append([*named, *(values[name] for name in _FIGURES), *values["usage"].values()])
    return b"".join(csv_row(map(csv_cell, row)) for row in rows)
