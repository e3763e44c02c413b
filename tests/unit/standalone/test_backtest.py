"""Jobs of a running system, read and decided again; policies by name and from files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from wayline.client import ApiError
from wayline.routing import current_policy
from wayline.standalone.cli import app
from wayline.standalone.recorded.backtest import backtest, load_policy
from wayline.standalone.terminal.list_views import backtest_table

from ..routing.recorded_jobs import NOW, recorded


class Aged:
    """The HTTP API of a system where one job's log is gone, and of another only its end is there."""

    async def pages(self, path: str, **_: Any) -> AsyncIterator[dict[str, Any]]:
        yield {"jobs": [{"job_id": name, "created_at": NOW.isoformat()} for name in ("whole", "gone", "cut")]}

    async def log(self, job_id: str) -> list[dict[str, Any]]:
        if job_id == "gone":
            raise ApiError("no job 'gone'", code="not_found", status=404)
        return recorded("drafting")[1 if job_id == "cut" else 0 :]


async def test_jobs_whose_logs_have_aged_out_are_skipped_and_counted():
    told = await backtest(Aged(), current_policy(), since=NOW - timedelta(days=40))  # type: ignore[arg-type]

    assert (told["jobs"], told["same"], told["aged_out"]) == (1, 1, 2)
    console = Console(width=200, record=True)
    console.print(backtest_table(told))
    assert "2 more were skipped, because their logs have expired" in console.export_text()


async def test_another_refusal_of_a_log_still_ends_the_backtest():
    class Refused(Aged):
        async def log(self, job_id: str) -> list[dict[str, Any]]:
            raise ApiError("no key", code="unauthenticated", status=401)

    with pytest.raises(ApiError, match="no key"):
        await backtest(Refused(), current_policy(), since=NOW - timedelta(days=40))  # type: ignore[arg-type]


def test_a_policy_is_a_name_or_a_file_of_overrides(tmp_path: Path):
    (tmp_path / "mine.yaml").write_text("tiers: {sentiment: premium}\n")
    (tmp_path / "mine.json").write_text('{"levels": {"complex": 0.1}}')

    mine = load_policy(str(tmp_path / "mine.yaml"))
    assert (mine.label, mine.tiers["sentiment"], mine.tiers["drafting"]) == ("mine/3", "premium", "standard")
    assert load_policy(str(tmp_path / "mine.json")).levels == {"complex": 0.1}
    assert load_policy("current") == current_policy()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tiers: {sentiment: huge}", "tiers.sentiment"),
        ("nonsense: 1", "nonsense"),
        ("levels: {simple: 0.5}", "levels.simple"),
        ("- 1", "names and values"),
        ("{", "read"),
    ],
)
def test_a_file_that_is_no_policy_is_refused_with_the_place(tmp_path: Path, text: str, told: str):
    path = tmp_path / "mine.yaml"
    path.write_text(text)

    with pytest.raises(ValueError, match=told):
        load_policy(str(path))


def test_what_is_neither_a_policy_nor_a_file_names_the_policies():
    with pytest.raises(ValueError, match="current, locked, all-standard, all-premium"):
        load_policy("nobody")


def test_a_wrong_argument_is_refused_in_one_line():
    for words, told in ((["nobody"], "neither a policy"), (["current", "--since", "soon"], "neither an age")):
        done = CliRunner().invoke(app, ["router", "backtest", *words])
        assert done.exit_code == 1
        assert done.stderr.startswith("wayline: ") and told in done.stderr
