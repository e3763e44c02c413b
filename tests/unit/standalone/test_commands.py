"""The command line's light side: what it imports, which files it ingests, how it says prices."""

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

from wayline.contracts.jobs import JobOptions, SubmitJob
from wayline.standalone.cli import app
from wayline.standalone.first_run import sample_files
from wayline.standalone.following import line
from wayline.standalone.ingesting import File, find_files
from wayline.standalone.money import usd

HEAVY = ("asyncpg", "fastapi", "httpx2", "mcp", "nats", "opentelemetry", "pydantic", "structlog", "wayline.chassis")


def test_the_command_starts_without_anything_heavy():
    script = "import sys, json, wayline.standalone.cli; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert not set(HEAVY) & set(json.loads(done.stdout))


def test_a_folder_gives_its_readable_files_and_none_that_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    texts = (
        "a.md",
        "deep/b.PDF",
        "c.yaml",
        "main.rs",
        "schema.sql",
        "Booking.com",
        "LICENSE",
        ".git/g.md",
        "deep/.h.md",
    )
    for name in texts:
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("täxt")
    (tmp_path / "docs" / "wide.log").write_bytes("text".encode("utf-16"))
    (tmp_path / "docs" / "cut").write_bytes(b"x" * 8_191 + "ä".encode())
    monkeypatch.chdir(tmp_path)

    found = find_files([Path("docs")])

    assert found.skipped == []
    assert {file.name for file in found.files} == {
        "docs/a.md",
        "docs/deep/b.PDF",
        "docs/c.yaml",
        "docs/main.rs",
        "docs/schema.sql",
        "docs/Booking.com",
        "docs/LICENSE",
        "docs/wide.log",
        "docs/cut",
    }


def test_what_a_folder_holds_and_search_cannot_find_is_skipped_with_the_reason(tmp_path: Path):
    (tmp_path / "photo.jpeg").write_bytes(b"\xff\xd8\xff\xe0 and so on")
    (tmp_path / "program").write_bytes(b"\x7fELF\x00\x00\xff")
    (tmp_path / "nothing.txt").write_bytes(b"")

    found = find_files([tmp_path])

    assert found.files == []
    assert [(one.name.rpartition("/")[2], one.reason.split(",")[0]) for one in found.skipped] == [
        ("nothing.txt", "it is empty"),
        ("photo.jpeg", "an image"),
        ("program", "binary data"),
    ]


def test_a_file_that_is_named_is_sent_whatever_it_is(tmp_path: Path):
    (tmp_path / "photo.jpeg").write_bytes(b"\xff\xd8\xff\xe0 and so on")

    assert [file.path for file in find_files([tmp_path / "photo.jpeg"]).files] == [tmp_path / "photo.jpeg"]


def test_a_file_is_called_as_it_was_given_where_that_means_something_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("text")
    monkeypatch.chdir(tmp_path / "notes")

    given = [Path("a.md"), Path("../notes/a.md"), tmp_path / "notes" / "a.md", Path()]

    assert [file.name for file in find_files(given).files] == ["a.md", "a.md", "a.md", "notes/a.md"]


def test_two_files_of_one_name_in_different_folders_are_two_documents():
    one, other = File(Path("x/README.md"), "x/README.md"), File(Path("y/README.md"), "y/README.md")

    assert one.document_id != other.document_id


def test_the_sample_is_the_repositorys_own_text_or_the_bundled_one(tmp_path: Path):
    repository = Path(__file__).parents[3]
    inside, outside = sample_files(repository), sample_files(tmp_path)

    assert {"docs/architecture.md", "services/standalone/README.md"} <= {file.name for file in inside}
    assert [file.name for file in outside] == ["wayline.md"]
    assert outside[0].path.read_text().startswith("# Wayline")


@pytest.mark.parametrize(
    ("cost", "shown"), [("0", "$0"), ("0.000123000", "$0.000123"), ("12.5", "$12.5"), (None, "cost unknown")]
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

    assert (done.exit_code, done.stdout) == (0, f"wayline {version('wayline-standalone')}\n")


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf"])
def test_a_number_that_is_none_is_refused_by_its_option(seconds: str):
    done = CliRunner().invoke(app, ["run", "hello", f"--max-seconds={seconds}"])

    assert done.exit_code == 2
    assert "'--max-seconds': a finite number is needed" in done.stderr


@pytest.mark.parametrize("words", [("run", "-"), ("agents", "put", "a", "-"), ("models", "add", "-")])
def test_an_input_that_is_not_text_is_one_line(words: tuple[str, ...]):
    done = CliRunner().invoke(app, words, input=b"caf\xe9")

    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "the input is not UTF-8 text (byte 3)" in done.stderr


@pytest.mark.parametrize("words", [("run", "caf\udce9"), ("jobs", "show", "\udce9"), ("jobs", "tail", "\udce9")])
def test_an_argument_that_is_not_text_is_one_line(words: tuple[str, ...]):
    done = CliRunner().invoke(app, words)

    assert (done.exit_code, done.stderr) == (2, "wayline: an argument is not UTF-8 text: correct it, or send a file\n")


def test_an_output_that_is_not_utf8_gets_json_that_it_can_hold(tmp_path: Path):
    script = "from wayline.standalone.commands.output import print_json; print_json({'answer': 'größer “als”'})"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}

    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)

    assert json.loads(done.stdout) == {"answer": "größer “als”"}


def test_an_unknown_service_is_answered_with_those_there_are(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "wayline.standalone", "serve", "gatway"],
        env={**os.environ, "WAYLINE_DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "'gatway'; there are: gateway, router, executor, retrieval, tool-registry, tracing" in done.stderr


@pytest.mark.parametrize("command", [("agents", "put", "a"), ("models", "add")], ids=" ".join)
@pytest.mark.parametrize(
    ("file", "wrong"), [("-", "the input is not JSON: "), ("none.json", "none.json cannot be read: No such file")]
)
def test_what_is_given_as_json_may_come_on_the_input_and_is_named_where_it_is_wrong(
    command: tuple[str, ...], file: str, wrong: str
):
    done = CliRunner().invoke(app, [*command, file], input="{not json")

    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith(f"wayline: {wrong}")


def test_a_time_that_costs_are_not_counted_from_is_refused_before_anybody_is_asked():
    done = CliRunner().invoke(app, ["costs", "--since", "yesterday"])

    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("wayline: --since: 'yesterday' is neither an age like 7d or 12h nor a date")


def test_all_that_a_job_can_be_asked_for_can_be_said_on_the_command_line():
    run = get_command(app).commands["run"]  # type: ignore[attr-defined]
    said = {parameter.name for parameter in run.params}

    assert set(JobOptions.model_fields) <= said
    assert set(SubmitJob.model_fields) - {"tenant", "input", "options"} <= said


@pytest.mark.parametrize("command", ["show", "remove"])
def test_a_models_name_without_its_provider_is_refused_before_anybody_is_asked(command: str):
    done = CliRunner().invoke(app, ["models", command, "gpt"])

    assert (done.exit_code, done.stderr) == (
        1,
        "wayline: 'gpt' is not of the form provider/model, as `wayline models list` shows it\n",
    )


def test_what_a_job_was_classified_as_is_said_or_why_it_was_not():
    told = {"type": "task.classified", "task_type": "contract_review", "reason": None}

    assert str(line(told)).strip() == "classified as contract review"
    assert str(line({**told, "task_type": None, "reason": "none fits"})).strip() == "not classified: none fits"


def test_why_an_answer_is_not_all_that_was_asked_for_is_said():
    ended = {"type": "job.completed", "partial": True, "reason": "the job's own budget has no room for a call"}

    assert str(line(ended)).strip() == ended["reason"]
    assert line({**ended, "reason": None}) is None


def test_a_job_that_was_handed_back_is_told_in_a_line():
    assert str(line({"type": "job.handed_back", "reason": "its executor is being stopped"})).strip() == "handed back"
