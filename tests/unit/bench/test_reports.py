"""The benchmarks' own thinking: what they make of what was measured. That they run to their end is seen by running."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path

import pytest

from ...bench import page
from ...bench.adapters import __main__ as adapters
from ...bench.adapters import provider, ways
from ...bench.prompts import __main__ as prompts
from ...bench.speed import __main__ as speed
from ...bench.speed import inputs, measures, model_call, model_server, report
from ...bench.speed.load import FLOOR, OURS, Load, percentile

DOCS = Path(__file__).parents[3] / "docs" / "performance.md"
PARTS = ("speed", "adapters", "prompts", "sessions")


def held(row: page.Row) -> str:
    return row.cells()[-1]


def test_a_bound_is_held_only_if_every_round_meets_it():
    assert held(page.Row("a", [2.0, 5.9], at_most=(6, 3))) == "must"
    assert held(page.Row("a", [2.0, 2.9], at_most=(6, 3))) == "aim"
    assert held(page.Row("a", [2.0, 6.1], at_most=(6, 3))) == "**missed**"
    assert held(page.Row("a", [50, 60], [100, 100], ratio_at_least=(1 / 3, 1 / 2))) == "aim"
    assert held(page.Row("a", [49, 60], [100, 100], ratio_at_least=(1 / 3, 1 / 2))) == "must"
    assert held(page.Row("a", [1.2, 1.4], [1.0, 1.0], ratio_at_most=(None, 1.3))) == "**missed**"
    assert held(page.Row("a", [1.2, 1.3], [1.0, 1.0], ratio_at_most=(None, 1.3))) == "aim"


def test_an_unmeasured_row_is_reported_as_not_measured():
    assert held(page.Row("a", [], at_most=(6, 3))) == "not measured"
    assert held(page.Row("a", [1.0], ratio_at_most=(None, 1.3))) == "not measured"


def test_a_row_shows_medians_and_ranges_of_both_and_their_ratio():
    row = page.Row("a", [2.0, 6.0, 3.0], [1.0, 2.0, 3.0], digits=1, ratio_at_most=(None, 1.3))

    assert row.cells() == [
        "a",
        "2.0 [1.0..3.0]",
        "3.0 [2.0..6.0]",
        "2.00 [1.00..3.00]",
        "",
        "ratio ≤ 1.30",
        "**missed**",
    ]


def test_a_part_is_written_between_its_own_markers(tmp_path: Path):
    path = tmp_path / "performance.md"
    marks = [f"<!-- made by `make bench`, {part}: {edge} -->\n" for part in "ab" for edge in ("begin", "end")]
    path.write_text("before\n" + "between\n".join(marks) + "after\n")

    page.write(path, "b", "new\n")

    assert path.read_text() == f"before\n{marks[0]}between\n{marks[1]}between\n{marks[2]}new\n{marks[3]}after\n"
    with pytest.raises(SystemExit, match="'c'"):
        page.write(path, "c", "new\n")


@pytest.mark.parametrize("part", PARTS)
def test_the_page_has_a_place_for_every_part(tmp_path: Path, part: str):
    path = tmp_path / "performance.md"
    path.write_text(DOCS.read_text())

    page.write(path, part, "new\n")

    assert "new\n" in path.read_text()


def test_interpolation_finds_how_many_jobs_meet_the_bound():
    assert measures._crossing([(100, 700.0), (200, 800.0), (400, 1_000.0)]) == pytest.approx(300)
    assert measures._crossing([(100, 700.0), (200, 710.0)]) == 200
    assert measures._crossing([(100, 700.0), (200, 690.0)]) == 200


def test_a_search_begins_below_what_the_round_before_has_found():
    assert [measures._level_below(found) for found in ([], [70], [255], [256])] == [16, 32, 64, 128]


def test_a_percentile_is_one_of_the_values():
    assert [percentile([3.0, 1.0, 2.0], share) for share in (0.0, 0.5, 0.99)] == [1.0, 2.0, 3.0]
    assert Load(seconds=3.0, done_at=[0.5, 1.5, 2.5, 3.5]).rate(1.0) == 1.0


@pytest.mark.parametrize("chars", [20, 1_000, 10_000])
def test_an_input_has_the_size_that_was_asked_for(chars: int):
    assert len(inputs.text_of(chars)) == chars


def test_the_speed_report_shows_everything_that_was_measured():
    results = report.Results(
        alone={FLOOR: [measures.Alone(6.0, 9.0)], OURS: [measures.Alone(20.0, 30.0, 5.5, 9.5)]},
        sustained={
            FLOOR: [measures.Sustained(500.0, {FLOOR: 1.0, "nats": 1.0})],
            OURS: [measures.Sustained(200.0, {"executor": 3.5, "nats": 2.5}, 1.2)],
        },
        inputs=[[inputs.Inputs("20 characters", measures.Sustained(300.0, {"router": 0.7, "executor": 2.0}))]],
        model_calls=[model_call.ModelCall(executor=0.9, adapter=0.4, typed=3.0, raw=0.6)],
    )

    said = report.report(results)

    assert "| submit → claimed, 1 in flight, p50 ms |  | 5.5 |  |  | ≤ 6 | aim |" in said
    assert "| 20 characters | 300 | 0.70 | 2.70 | router ≤ 0.8: aim |" in said
    assert (
        "| executor, a model call, against the SDK's typed stream | 3.00 | 0.90 | 0.30 |  | ratio ≤ 1.30 | aim |"
        in said
    )
    assert (
        "| executor, a model call, against the SDK's raw stream | 0.60 | 0.90 | 1.50 |  | ratio ≤ 1.30 | **missed** |"
        in said
    )
    assert "| executor | 3.50 |" in said
    assert {"load", "model"} < set(speed.PARTS)


def test_the_adapters_report_compares_each_wire_with_both_sdk_streams():
    measured = {("chat", "short"): {ways.OURS: [0.5], ways.TYPED: [1.0], ways.RAW: [0.25]}}

    said = adapters.report(measured, load_before=0.0)

    assert "| chat, 5 words, against the SDK's typed stream | 1.00 | 0.50 | 0.50 |  | ratio ≤ 1.30 | aim |" in said
    assert "| chat, 5 words, against the SDK's raw stream | 0.25 | 0.50 | 2.00 |  | ratio ≤ 1.30 | **missed** |" in said


def test_the_prompts_report_holds_every_way_against_ours():
    billed = {
        "m": [prompts.Bill("ours", 100, 90, 10, Decimal("0.02")), prompts.Bill("worse", 100, 0, 0, Decimal("0.05"))]
    }

    said = prompts.report(billed)

    assert "| ours | 100 | 90 | 10 | 90.0% | 0.0200 | 1.00 times |" in said
    assert "| worse | 100 | 0 | 0 | 0.0% | 0.0500 | 2.50 times |" in said


def test_the_model_name_sets_how_many_calls_its_server_asks_for():
    assert model_server.asks(3, 0).count(b'"get_current_time"') == 3


@pytest.mark.parametrize("wire", ways.WIRES)
@pytest.mark.parametrize("way", [ways.OURS, ways.TYPED, ways.RAW])
async def test_every_way_of_calling_is_answered(wire: str, way: str):
    async with provider.served() as url:
        called = ways.Ways(ways.WIRES[wire], f"{url}/short", ways.asking(wire))
        try:
            await called.calls[way]()
        finally:
            await called.close()


@pytest.mark.slow
@pytest.mark.parametrize("wire", ["anthropic", "openai"])
async def test_our_prompt_assembly_reads_the_cache_and_costs_least(wire: str):
    billed = {name: await prompts.measure(wire, name, way, jobs=1) for name, way in prompts.ways(wire).items()}

    ours = billed.pop("ours")
    assert ours.read > ours.written > 0
    assert all(ours.usd < other.usd for other in billed.values())
    assert len({bill.usd for bill in billed.values()}) == len(billed), "each is another way"


def test_no_file_beside_a_script_hides_a_module_of_python():
    # A script's own directory comes first on its path, so its neighbours are found before Python's own modules.
    scripts = Path(speed.__file__).parent
    assert not {path.stem for path in scripts.glob("*.py")} & set(sys.stdlib_module_names)
