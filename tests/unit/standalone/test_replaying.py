"""The commands that replay recorded jobs: what they print and how they exit, without any gateway."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wayline.standalone.cli import app

GOLDEN = Path(__file__).parents[1] / "executor" / "replay" / "golden"
TOOLS = str(GOLDEN / "tools.json")


def wayline(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_an_identical_replay_exits_with_zero():
    done = wayline("jobs", "replay", TOOLS)

    assert done.exit_code == 0
    assert "identical" in done.stdout


def test_a_changed_prompt_exits_with_one_and_says_where(tmp_path):
    prompt = tmp_path / "prompt.md"
    prompt.write_text("Be brief.")

    done = wayline("jobs", "replay", TOOLS, "--prompt", str(prompt), "--json")

    assert done.exit_code == 1
    divergence = json.loads(done.stdout)["divergence"]
    assert (divergence["step"], divergence["what"]) == (1, "prompt")


def test_another_model_has_its_price_in_the_answer():
    done = wayline("jobs", "replay", TOOLS, "--model", "anthropic/claude-opus-4-8", "--json")

    found = json.loads(done.stdout)
    assert found["identical"]
    assert found["now_usd"] != found["recorded_usd"]


@pytest.mark.parametrize(
    ("more", "why"), [(["--model", "no/such"], "nothing is known of a model"), (["--prompt", "/nowhere"], "/nowhere")]
)
def test_a_replay_that_cannot_be_made_exits_with_two(more, why):
    done = wayline("jobs", "replay", TOOLS, *more)

    assert done.exit_code == 2
    assert why in done.stderr


def test_recorded_jobs_are_tested_in_one_table(tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("{}")

    good = wayline("test", "--recorded", TOOLS, str(GOLDEN / "partial.json"))
    bad = wayline("test", "--recorded", TOOLS, str(broken))

    assert (good.exit_code, bad.exit_code) == (0, 2)
    assert good.stdout.count("identical") == 2
    assert "cannot be replayed" in bad.stdout
