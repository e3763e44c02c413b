"""What pages show of money, tokens and times is what the API says: 1,000 random jobs are read back from the HTML."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from wayline.console.pages.frame import Frame
from wayline.console.pages.job import TEMPLATE as JOB_TEMPLATE
from wayline.console.pages.job import VIEWS, JobPage
from wayline.console.pages.jobs import COLUMNS
from wayline.console.render.environment import Templates
from wayline.contracts.jobs import JobView, Status
from wayline.contracts.money import JobCosts, Usage

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ME = {"tenant": "acme", "name": "ann", "scopes": ["read"], "open": False, "version": "1"}
FRAME = Frame("Jobs", "/jobs", ME, "token", "system", "/jobs", now=NOW)
JOBS, ON_A_PAGE, WITH_A_PAGE = 1_000, 50, 200
SEED = 20_260_501
MONEY = re.compile(r'<span class="money(?: unknown)?" title="([^"]*)">([^<]*)</span>')
RANGE = re.compile(r'<span class="failed-text" title="([^"]*) to ([^"]*)">[^<]*</span>')
UNITS = {"ms": 1.0, "s": 1_000.0, "min": 60_000.0, "h": 3_600_000.0}


def amount(random: Random) -> Decimal | None:
    """Return an amount as prices make them: unknown, nothing, tiny or large."""
    kind = random.random()
    if kind < 0.15:
        return None
    return Decimal(0) if kind < 0.25 else Decimal(random.randrange(1, 10**9)).scaleb(-random.randrange(1, 13))


def job_of(random: Random, number: int) -> dict[str, Any]:
    """Return a job as the API answers it."""
    begun = NOW - timedelta(microseconds=random.randrange(1, 10**13))
    ended = begun + timedelta(milliseconds=random.choice((random.random(), random.random() * 10**5, 10**8)))
    read = random.choice((0, random.randrange(10**7)))
    usage = Usage(input=read, output=random.randrange(10**5), cache_read=random.randrange(read + 1))
    upper, unsettled = amount(random), random.random() < 0.3
    costs = JobCosts(
        unsettled_calls=int(unsettled),
        unsettled_lower_usd=(upper or Decimal(1)) / 3 if unsettled else Decimal(0),
        unsettled_upper_usd=upper if unsettled else Decimal(0),
    )
    fields: dict[str, Any] = {"usage": usage, "steps": random.randrange(65), "costs": costs, "created_at": begun}
    is_over = random.random() < 0.8
    job = JobView(
        job_id=f"j{number}",
        agent="helper",
        status=Status.COMPLETED if is_over else Status.RUNNING,
        total_cost_usd=amount(random),
        ended_at=ended if is_over else None,
        **fields,
    )
    return job.model_dump(mode="json")


def shown_amount(html: str) -> tuple[Decimal | None, str]:
    """Return the exact amount that a place shows, and its short form."""
    found = MONEY.search(html)
    assert found
    exact = None if found[1] == "its price is not known" else Decimal(found[1].removeprefix("$"))
    return exact, found[2]


def require_amount(html: str, told: str | None) -> None:
    """Compare an amount with what the API says, to the last digit; its short form is it, rounded."""
    exact, short = shown_amount(html)
    assert exact == (None if told is None else Decimal(told))
    if exact is None:
        assert short == "unknown"
        return
    written = short.removeprefix("$").replace(",", "")
    places = len(written.partition(".")[2])
    assert abs(Decimal(written) - exact) <= Decimal(1).scaleb(-places) / 2
    assert (Decimal(written) == 0) is (exact == 0), short


def require_range(html: str, costs: dict[str, Any]) -> None:
    """Compare what is not settled with what the API says; where all is settled nothing is said."""
    found = RANGE.search(html)
    assert (found is not None) is bool(costs["unsettled_calls"])
    if found:
        upper = None if found[2] == "unknown" else Decimal(found[2].removeprefix("$"))
        told = costs["unsettled_upper_usd"]
        assert Decimal(found[1].removeprefix("$")) == Decimal(costs["unsettled_lower_usd"])
        assert upper == (None if told is None else Decimal(told))


def require_duration(text: str, job: dict[str, Any]) -> None:
    """Compare how long a job took with what the API says, as exactly as the text is."""
    parts = [(float(number), unit) for number, unit in re.findall(r"([\d.]+) (ms|s|min|h)", text)]
    read = sum(number * UNITS[unit] for number, unit in parts)
    begun, ended = (datetime.fromisoformat(job[name]) for name in ("created_at", "ended_at"))
    least = UNITS[parts[-1][1]] * (0.1 if "." in text else 1)
    assert abs(read - (ended - begun).total_seconds() * 1_000) <= least


def require_figures(html: str, job: dict[str, Any], *, age: str, took: str) -> None:
    """Compare what both pages show of a job."""
    assert f'<time datetime="{job["created_at"]}"' in age
    assert (
        (f"Ended {datetime.fromisoformat(job['ended_at']):%Y-%m-%d %H:%M:%S} UTC" in took) if job["ended_at"] else True
    )
    if job["ended_at"]:
        require_duration(re.sub(r"<[^>]*>", "", took), job)
    require_range(html, job["costs"])


@pytest.fixture(scope="module")
def jobs() -> list[dict[str, Any]]:
    random = Random(SEED)
    return [job_of(random, number) for number in range(JOBS)]


def test_the_list_shows_each_figure_as_the_api_says_it(jobs: list[dict[str, Any]]):
    for start in range(0, JOBS, ON_A_PAGE):
        batch = jobs[start : start + ON_A_PAGE]
        html = Templates().render("job_rows.html", jobs=batch, columns=COLUMNS, frame=FRAME).decode()
        rows = html.split("<tr ")[1:]
        assert len(rows) == len(batch)
        for row, job in zip(rows, batch, strict=True):
            cells = dict(
                zip(("pick", "id", "status", *COLUMNS), re.findall(r"<td.*?</td>", row, re.DOTALL), strict=True)
            )
            assert re.findall(r">([\d,]+)<", cells["steps"]) == [str(job["steps"])]
            assert re.findall(r">([\d,]+)<", cells["tokens"]) == [f"{job['usage']['input'] + job['usage']['output']:,}"]
            require_amount(cells["cost"], job["total_cost_usd"])
            require_figures(cells["cost"], job, age=cells["age"], took=cells["took"])


def test_a_jobs_page_shows_each_figure_as_the_api_says_it(jobs: list[dict[str, Any]]):
    for job in jobs[:WITH_A_PAGE]:
        page = JobPage(job, "conversation", [], [], None, [])
        html = Templates().render(JOB_TEMPLATE, page=page, frame=FRAME, views=VIEWS).decode()
        figures = dict(re.findall(r"<dt>(\w+)</dt>(<dd.*?</dd>)", html))
        usage = job["usage"]
        tokens = [usage["input"] + usage["output"], *([usage["cache_read"]] if usage["cache_read"] else [])]
        assert [int(one.replace(",", "")) for one in re.findall(r"[\d,]+(?= from|<| <)", figures["Tokens"])] == tokens
        assert f">{job['steps']}<" in figures["Steps"]
        require_amount(figures["Cost"], job["total_cost_usd"])
        require_figures(figures["Cost"], job, age=figures["Accepted"], took=figures.get("Took", ""))
        assert ("Took" in figures) is bool(job["ended_at"])
