"""The command line's light side: what it imports, what it refuses, how it prints prices and events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from wayline.chassis.running_version import running_version
from wayline.contracts.jobs import JobOptions, SubmitJob
from wayline.standalone.cli import app
from wayline.standalone.launch.sample_job import sample_files
from wayline.standalone.terminal.job_progress import event_line
from wayline.standalone.terminal.money_views import usd

HEAVY = ("asyncpg", "fastapi", "httpx2", "mcp", "nats", "opentelemetry", "pydantic", "structlog", "wayline.chassis")


def test_the_command_starts_without_anything_heavy():
    script = "import sys, json, wayline.standalone.cli; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert not set(HEAVY) & set(json.loads(done.stdout))


def test_the_sample_is_the_repositorys_own_text_or_the_bundled_one(tmp_path: Path):
    repository = Path(__file__).parents[3]
    inside, outside = sample_files(repository), sample_files(tmp_path)

    assert {"docs/architecture.md", "services/standalone/README.md"} <= {file.name for file in inside}
    assert [file.name for file in outside] == ["wayline.md"]
    assert outside[0].path.read_text().startswith("# Wayline")


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        ("0", "$0"),
        ("0.000123000", "$0.000123"),
        ("12.5", "$12.5"),
        (None, "cost unknown"),
        ("-0.0045", "-$0.0045"),
        ("-0.0000004", "-$0.0000004"),
        ("0.0012345678", "$0.001235"),
    ],
)
def test_an_unknown_price_is_never_shown_as_zero(cost: str | None, shown: str):
    assert usd(cost) == shown


def test_a_wrong_setting_is_named_by_its_variable(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "wayline.standalone", "up"],
        env={**os.environ, "WAYLINE_NATS_PORT": "many", "WAYLINE_DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "WAYLINE_NATS_PORT" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("WAYLINE_URL", "garbage"),
        ("WAYLINE_URL", "http://here:port"),
        ("WAYLINE_HTTP_PORT", "many"),
        ("WAYLINE_API_KEY", "ключ"),
    ],
)
def test_a_wrong_address_is_named_by_its_variable(variable: str, value: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(variable, value)

    done = CliRunner().invoke(app, ["jobs", "list"])

    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"wayline: {variable}: ")


def test_the_version_is_that_of_the_package():
    done = CliRunner().invoke(app, ["--version"])

    assert (done.exit_code, done.stdout) == (0, f"wayline {running_version()}\n")
    assert running_version().version == version("wayline-standalone")


def test_the_version_is_told_with_formats_migrations_and_libraries():
    done = CliRunner().invoke(app, ["version", "--json"])

    told = json.loads(done.stdout)
    assert told["version"] == version("wayline-standalone")
    assert told["formats"]["wayline.job"] == 1
    assert set(told["migrations"]) == {"gateway", "router", "retrieval", "tools", "notifier", "tracing"}
    assert told["libraries"]["nats-py"] == version("nats-py")
    shown = CliRunner().invoke(app, ["version"]).stdout
    assert f"schema router\t{told['migrations']['router']}\n" in shown


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf"])
def test_an_infinite_number_is_refused_by_its_option(seconds: str):
    done = CliRunner().invoke(app, ["run", "hello", f"--max-seconds={seconds}"])

    assert done.exit_code == 2
    assert "'--max-seconds': give a finite number" in done.stderr


@pytest.mark.parametrize("words", [("run", "-"), ("agents", "put", "a", "-"), ("models", "add", "-")])
def test_an_input_that_is_not_text_is_one_line(words: tuple[str, ...]):
    done = CliRunner().invoke(app, words, input=b"caf\xe9")

    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "the input is not UTF-8 text (byte 3)" in done.stderr


@pytest.mark.parametrize("words", [("run", "caf\udce9"), ("jobs", "show", "\udce9"), ("jobs", "tail", "\udce9")])
def test_an_argument_that_is_not_text_is_one_line(words: tuple[str, ...]):
    done = CliRunner().invoke(app, words)

    assert (done.exit_code, done.stderr) == (2, "wayline: an argument is not UTF-8 text: correct it, or send a file\n")


def test_json_is_escaped_for_an_output_that_is_not_utf8(tmp_path: Path):
    script = "from wayline.standalone.commands.output import print_json; print_json({'answer': 'größer “als”'})"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}

    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)

    assert json.loads(done.stdout) == {"answer": "größer “als”"}


def test_an_unknown_service_is_refused_with_the_known_ones(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "wayline.standalone", "serve", "gatway"],
        env={**os.environ, "WAYLINE_DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "'gatway'; there are: gateway, router, executor, retrieval, tool-registry, notifier, tracing" in done.stderr


@pytest.mark.parametrize("command", [("agents", "put", "a"), ("models", "add")], ids=" ".join)
@pytest.mark.parametrize(
    ("file", "wrong"), [("-", "the input is not JSON: "), ("none.json", "none.json cannot be read: No such file")]
)
def test_invalid_json_is_named_by_its_file_or_the_input(command: tuple[str, ...], file: str, wrong: str):
    done = CliRunner().invoke(app, [*command, file], input="{not json")

    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith(f"wayline: {wrong}")


@pytest.mark.parametrize("command", [("costs",), ("jobs", "list")], ids=" ".join)
def test_an_unreadable_since_is_refused_before_any_request(command: tuple[str, ...]):
    done = CliRunner().invoke(app, [*command, "--since", "yesterday"])

    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("wayline: --since: 'yesterday' is neither an age like 7d or 12h nor a date")


def test_run_has_an_option_for_every_field_of_a_job():
    run = get_command(app).commands["run"]  # type: ignore[attr-defined]
    options = {parameter.name for parameter in run.params}

    assert set(JobOptions.model_fields) <= options
    # A fork has a command of its own, a conversation is a session, and the router submits what keeps memory in order.
    beside = {"tenant", "input", "options", "fork", "history", "extract", "summarize"}
    assert set(SubmitJob.model_fields) - beside <= options


@pytest.mark.parametrize("command", ["show", "remove"])
def test_a_model_without_its_provider_is_refused_before_any_request(command: str):
    done = CliRunner().invoke(app, ["models", command, "gpt"])

    assert (done.exit_code, done.stderr) == (
        1,
        "wayline: 'gpt' is not of the form provider/model, as `wayline models list` shows it\n",
    )


def test_a_classification_is_printed_with_its_type_or_its_reason():
    told = {"type": "task.classified", "task_type": "contract_review", "reason": None}

    assert str(event_line(told)).strip() == "classified as contract review"
    assert str(event_line({**told, "task_type": None, "reason": "none fits"})).strip() == "not classified: none fits"


def test_a_partial_answers_reason_is_printed():
    ended = {"type": "job.completed", "partial": True, "reason": "the job's own budget has no room for a call"}

    assert str(event_line(ended)).strip() == ended["reason"]
    assert event_line({**ended, "reason": None}) is None


def test_a_handed_back_job_is_printed_in_one_line():
    assert (
        str(event_line({"type": "job.handed_back", "reason": "its executor is being stopped"})).strip() == "handed back"
    )
