"""Jobs as lines of a file: JSON, or a row of a table that a spreadsheet opens. Pure."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, Field

from wayline.contracts.feedback import FeedbackSummary
from wayline.contracts.jobs import Failure, JobView, Route
from wayline.contracts.money import Usage
from wayline.gateway.shapes.csv_rows import csv_cell, csv_row
from wayline.gateway.shapes.job_query import JobFilter

Format = Literal["ndjson", "csv"]
MEDIA_TYPES: Final[dict[Format, str]] = {"ndjson": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
_PARTS: Final[dict[str, type[BaseModel]]] = {
    "route": Route,
    "usage": Usage,
    "error": Failure,
    "feedback": FeedbackSummary,
}
"""Fields of a job whose own fields are a column each."""
_LEFT_OUT: Final = {"links"}


class ExportQuery(JobFilter):
    """Which jobs are exported, and how they are written."""

    format: Format = Field(default="ndjson", description="A JSON object a line, or a table.")


def columns() -> list[str]:
    """Return the names of the columns: every field of a job."""
    return [
        column
        for name in JobView.model_fields
        if name not in _LEFT_OUT
        for column in ([f"{name}.{part}" for part in _PARTS[name].model_fields] if name in _PARTS else [name])
    ]


def heading(format: Format) -> bytes:
    """Return what the file begins with."""
    return csv_row(columns()) if format == "csv" else b""


def line(job: JobView, format: Format) -> bytes:
    """Return a job as a line of the file."""
    if format == "ndjson":
        return job.model_dump_json(exclude=_LEFT_OUT).encode() + b"\n"
    values = job.model_dump(mode="json", exclude=_LEFT_OUT)
    cells: list[str] = []
    for name in columns():
        whole, _, part = name.partition(".")
        value = values[whole]
        cells.append(csv_cell((value or {}).get(part) if part else value))
    return csv_row(cells)
