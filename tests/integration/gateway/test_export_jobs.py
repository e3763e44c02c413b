"""Jobs as a file: whole or broken off, and no cell of it a formula."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from wayline.contracts.errors import Reject, Unavailable
from wayline.contracts.jobs import Failure, JobView, Status
from wayline.contracts.money import Usage
from wayline.contracts.traces import CostRow, CostTable, GetCosts, JobPage, ListJobs
from wayline.gateway.handlers.jobs import export_jobs
from wayline.gateway.shapes.exported_jobs import columns

from .conftest import Running
from .others import Others

USD = Decimal("0.125")
HOSTILE = ('=HYPERLINK("http://evil")', "+1", "-1", "@SUM(A1)", "\t=1", "\n=1", "\uff1d1", "a\n=1", 'says "hi", twice')


def job(number: int) -> JobView:
    return JobView(
        job_id=f"job_{number:04}",
        status=Status.FAILED,
        agent="assistant",
        tags=("team:a", "team:b"),
        answer=HOSTILE[number % len(HOSTILE)],
        usage=Usage(input=number),
        error=Failure(code="crash_loop", message=HOSTILE[number % len(HOSTILE)]),
        created_at=datetime(2026, 5, 1, tzinfo=UTC),
    )


def paged(jobs: list[JobView], *, breaks_at: str | None = None) -> Any:
    """Answer as tracing does, two jobs a page; at one cursor it is away."""

    def answer(asked: ListJobs) -> JobPage | Exception:
        if breaks_at is not None and asked.cursor == breaks_at:
            return Unavailable("tracing")
        at = int(asked.cursor or 0)
        return JobPage(jobs=tuple(jobs[at : at + 2]), next_cursor=str(at + 2) if at + 2 < len(jobs) else None)

    return answer


async def test_a_file_holds_every_job_and_field_and_no_formula(gateway: Running, others: Others):
    jobs = [job(number) for number in range(len(HOSTILE))]
    await others.answer(ListJobs, paged(jobs))

    lines = (await gateway.client.get("/v1/jobs/export?status=failed&agent=a&until=2999-01-01")).text.splitlines()
    table = await gateway.client.get("/v1/jobs/export?format=csv")
    rows = list(csv.DictReader(io.StringIO(table.text, newline="")))

    assert [json.loads(line)["answer"] for line in lines] == list(HOSTILE)
    assert set(columns()) == set(rows[0]) and len(rows) == len(jobs)
    assert {name.partition(".")[0] for name in columns()} == set(JobView.model_fields) - {"links"}
    assert [row["answer"].lstrip("'") for row in rows] == list(HOSTILE)
    assert not [
        cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@", "\t", "\n", "\uff1d"))
    ]
    assert (rows[3]["usage.input"], rows[3]["tags"], rows[3]["partial"]) == ("3", '["team:a", "team:b"]', "false")
    assert 'filename="jobs.csv"' in table.headers["content-disposition"]
    asked = others.asked[0]
    assert isinstance(asked, ListJobs) and asked.whole_answers and asked.status == Status.FAILED
    assert asked.until is not None and asked.until < datetime(2999, 1, 1, tzinfo=UTC)


async def test_a_file_that_cannot_be_finished_breaks_off(gateway: Running, others: Others, monkeypatch):
    monkeypatch.setattr(export_jobs, "AGAIN_S", 0)
    await others.answer(ListJobs, paged([job(number) for number in range(5)], breaks_at="2"))

    with pytest.raises(httpx2.RemoteProtocolError):
        await gateway.client.get("/v1/jobs/export?format=csv")

    assert len(others.asked) == 1 + export_jobs.TRIES


async def test_an_export_that_is_refused_is_an_error(gateway: Running, others: Others):
    await others.answer(ListJobs, Reject("no", code="invalid_cursor", status=422))

    refused = await gateway.client.get("/v1/jobs/export")
    unknown = await gateway.client.get("/v1/jobs/export?format=xlsx")

    assert (refused.status_code, unknown.status_code) == (422, 422)


async def test_costs_are_a_file_for_a_spreadsheet(gateway: Running, others: Others):
    row = CostRow(group={"user": "=1+1", "day": "2026-05-01"}, calls=2, calls_unknown=0, usage=Usage(), cost_usd=USD)
    nobodys = row.model_copy(update={"group": {"user": "-", "day": "2026-05-01"}})
    await others.answer(GetCosts, CostTable(rows=(row, nobodys), total=row.model_copy(update={"group": {}}), groups=1))

    answer = await gateway.client.get("/v1/costs?group_by=user,day&format=csv")
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))

    assert [(row["user"], row["day"], row["cost_usd"]) for row in rows] == [
        ("'=1+1", "2026-05-01", "0.125"),
        ("-", "2026-05-01", "0.125"),
        ("total", "total", "0.125"),
    ]
