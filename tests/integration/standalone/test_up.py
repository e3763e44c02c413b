"""A running `wayline up`: what it shows, and every command against it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import nats
import pytest

from wayline.contracts.jobs import INPUT_SHOWN_MAX
from wayline.embedded.process import children_of
from wayline.testkit import until
from wayline.testkit.databases import run_sql
from wayline.testkit.fixtures import run

from .conftest import Installed

# One `wayline up` for all of them.

READ_COMMANDS = (
    ("jobs", "list"),
    ("costs", "--by", "agent,day"),
    ("agents", "list"),
    ("agents", "show", "assistant"),
    ("tools",),
    ("tools", "search", "what time is it?"),
    ("documents", "list"),
    ("dead-letters", "list"),
    ("search", "what is a job"),
    ("doctor",),
    ("migrate",),
)


def services_in(span: dict[str, Any]) -> set[str]:
    return {span["service"]}.union(*map(services_in, span["children"]))


def last_job(wayline: Installed) -> str:
    return wayline.run_json("jobs", "list", "--limit", "1")["jobs"][0]["job_id"]


def test_a_first_run_shows_answer_citations_trace_and_next_steps(wayline: Installed):
    shown = wayline.output.read_text()

    assert "Citations\n  [1] wayline.md" in shown
    assert "completed · 2 steps · " in shown
    for service in ("gateway", "router", "executor", "tool-registry", "retrieval"):
        assert re.search(rf"\S.*  {service}  \d+ ms", shown), service
    assert f"curl -s 'http://127.0.0.1:{wayline.http_port}/v1/jobs?wait=30'" in shown


def test_a_tenants_server_is_saved_with_its_secrets(wayline: Installed):
    config = {"url": "https://bank.invalid/mcp", "headers": {"Authorization": "Bearer secret"}}
    servers = f"http://127.0.0.1:{wayline.http_port}/v1/mcp/servers"

    saved = httpx2.put(f"{servers}/bank", json=config)

    assert saved.status_code == 200, saved.text
    assert saved.json()["config"]["headers"] == {"Authorization": "**********"}
    assert httpx2.delete(f"{servers}/bank").json() == {"deleted": True}


def test_the_snippet_that_it_prints_sends_a_job(wayline: Installed):
    snippet = wayline.output.read_text().split("<<'END'\n")[1].split("END\n")[0]

    def jobs() -> set[str]:
        return {job["job_id"] for job in wayline.get("/v1/jobs")["jobs"]}

    before = jobs()

    subprocess.run([sys.executable, "-c", snippet], check=True, timeout=30)

    asyncio.run(
        until(
            lambda: jobs() - before,
            why="the job that was published is in the list",
        )
    )


def test_the_sample_is_shown_once(wayline: Installed):
    assert (wayline.data / "sampled").exists()


def test_run_shows_progress_apart_from_the_answer(wayline: Installed):
    done = wayline.wayline("run", "What happens when a process is killed?")

    assert done.returncode == 0, done.stderr
    assert "wayline.md" in done.stdout and "completed · 2 steps" in done.stdout
    assert "search_knowledge" in done.stderr and "search_knowledge" not in done.stdout


def test_the_trace_of_a_job_that_has_just_ended_is_whole(wayline: Installed):
    job = json.loads(wayline.wayline("run", "What is a job?", "--json").stdout)["job_id"]
    trace = wayline.run_json("trace", job)

    assert trace["totals"]["missing"] == 0
    assert {"gateway", "router", "executor", "tool-registry", "retrieval"} <= services_in(trace["root"])


def test_run_with_json_prints_the_job_and_nothing_else(wayline: Installed):
    done = wayline.wayline("run", "-", "--json", stdin="What is a job?")
    job = json.loads(done.stdout)

    assert (done.returncode, done.stderr, job["status"], job["cost_usd"]) == (0, "", "completed", "0")
    assert job["citations"]


def test_run_asks_for_what_its_options_say(wayline: Installed):
    asked = {
        "model": "offline/extractive",
        "task_type": "faq",
        "style": "in one sentence",
        "agent_style": "direct",
        "tools": ["search_knowledge", "get_current_time"],
        "effort": "low",
        "temperature": 0.5,
        "max_steps": 3,
        "max_output_tokens": 200,
        "max_seconds": 60.0,
        "provider_patience_s": 90.0,
        "budget_usd": "0.05",
        "at_cap": "park",
        "required_tools": ["search_knowledge", "get_current_time"],
        "lane": "batch",
        "tags": ["team:billing", "case:7"],
        "when_busy": "refuse",
    }
    flags = {
        "budget_usd": "budget",
        "provider_patience_s": "provider-patience",
        "required_tools": "require-tool",
        "tools": "tool",
        "tags": "tag",
    }
    words = [
        word
        for name, value in asked.items()
        for one in (value if isinstance(value, list) else [value])
        for word in (f"--{flags.get(name, name.replace('_', '-'))}", str(one))
    ]
    words += ["--no-web-search", "--no-memory", "--show-reasoning"]

    done = wayline.wayline("run", "What is a job?", "--id", "all-of-it", "--user", "ada", *words, "--json")
    again = wayline.wayline("run", "What is a job?", "--id", "all-of-it", "--user", "ada", *words, "--json")

    assert (done.returncode, done.stderr, again.stdout) == (0, "", done.stdout)
    first = json.loads(wayline.wayline("jobs", "tail", "all-of-it", "--json").stdout.splitlines()[0])
    assert first["job"]["user_id"] == "ada"
    assert first["job"]["options"] == {
        **asked,
        "web_search": False,
        "memory": False,
        "images": None,
        "show_reasoning": True,
        "dry_run": False,
        "output_schema": None,
        "client_tools": None,
        "tool_results_within_s": None,
        "tools_in_order": None,
        "webhook": None,
        "agent_label": None,
    }


def test_every_view_of_a_job_shows_its_inputs_beginning(wayline: Installed):
    question = "What is\na job? " + "Tell me all. " * 40
    job = json.loads(wayline.wayline("run", question, "--json").stdout)["job_id"]
    shown = wayline.run_json("jobs", "show", job)["input"]
    listed = {row["job_id"]: row["input"] for row in wayline.run_json("jobs", "list")["jobs"]}

    assert shown.startswith("What is a job? Tell me all.") and shown.endswith("…")
    assert len(shown) == INPUT_SHOWN_MAX
    assert listed[job] == shown
    assert "What is a job? Tell me all." in wayline.wayline("jobs", "list").stdout
    assert "What is a job? Tell me all." in wayline.wayline("jobs", "show", job).stdout


def test_run_exits_with_1_when_the_agent_is_unknown(wayline: Installed):
    done = wayline.wayline("run", "hello", "--agent", "nobody", "--json")
    answer = json.loads(done.stdout)

    assert (done.returncode, answer["error"]["code"], answer["error"]["status"]) == (1, "unknown_agent", 404)
    assert "nobody" in answer["error"]["detail"]


def test_a_job_that_is_only_submitted_can_be_followed_later(wayline: Installed):
    job = json.loads(wayline.wayline("run", "What is a job?", "--no-wait", "--json").stdout)["job_id"]

    events = [json.loads(line) for line in wayline.wayline("jobs", "tail", job, "--json").stdout.splitlines()]

    told = [event for event in events if event["type"] != "delta"]
    assert [event["seq"] for event in told] == list(range(1, len(told) + 1))
    assert told[-1]["type"] == "job.completed"


@pytest.mark.parametrize("words", READ_COMMANDS, ids=" ".join)
def test_every_command_speaks_json(wayline: Installed, words: tuple[str, ...]):
    assert wayline.run_json(*words)


def test_the_commands_for_one_job_speak_json(wayline: Installed):
    job = last_job(wayline)

    assert wayline.run_json("jobs", "show", job)["job_id"] == job
    assert wayline.run_json("trace", job)["job_id"] == job


def test_what_is_shown_of_an_agent_can_be_saved_again(wayline: Installed):
    shown = wayline.wayline("agents", "show", "assistant").stdout

    done = wayline.wayline("agents", "put", "copy", "-", stdin=shown)

    assert (done.returncode, done.stdout) == (0, "copy is saved as version 1\n"), done.stderr
    assert wayline.run_json("agents", "show", "copy")["config"] == json.loads(shown)["config"]


def test_an_agent_that_is_removed_takes_no_more_jobs(wayline: Installed):
    assert wayline.wayline("agents", "put", "brief", "-", stdin="{}").returncode == 0

    removed, nothing = (wayline.wayline("agents", "remove", "brief") for _ in range(2))

    assert removed.stdout == "brief is removed\n"
    assert (nothing.returncode, "no agent 'brief'" in nothing.stderr) == (1, True), nothing.stderr
    refused = json.loads(wayline.wayline("run", "x", "--agent", "brief", "--json").stdout)
    assert refused["error"]["code"] == "unknown_agent"


def test_lists_into_a_pipe_are_columns_between_tabs(wayline: Installed):
    agents = wayline.wayline("agents", "list").stdout.splitlines()

    assert "assistant" in [row.split("\t")[0] for row in agents]
    assert {row.count("\t") for row in agents} == {3}


def test_commands_find_what_runs_in_their_data_directory(wayline: Installed):
    done = wayline.wayline("agents", "list", WAYLINE_HTTP_PORT="")

    assert (done.returncode, done.stderr) == (0, "")


def test_tail_ends_quietly_on_a_closed_pipe(wayline: Installed):
    words = [sys.executable, "-m", "wayline.standalone", "jobs", "tail", last_job(wayline), "--json"]
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(words, env=wayline.env, stdout=write, stderr=subprocess.PIPE, timeout=30, check=False)
    finally:
        os.close(write)

    assert done.stderr == b""


def test_a_refusal_is_one_line_and_with_json_one_value(wayline: Installed):
    plain = wayline.wayline("jobs", "show", "nothing")
    as_json = wayline.wayline("jobs", "cancel", last_job(wayline), "--json")

    assert (plain.returncode, plain.stdout) == (1, "")
    assert plain.stderr == "wayline: no job 'nothing'\n"
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["error"]["status"] == 409


def test_ingest_takes_a_folder_and_says_which_file_failed_and_why(wayline: Installed, tmp_path: Path):
    (tmp_path / "notes" / ".hidden").mkdir(parents=True)
    (tmp_path / "notes" / "sea.md").write_text("# Sea\n\nA lighthouse keeper counts the waves.")
    (tmp_path / "notes" / "page.html").write_text("<h1>Kelp</h1><p>Kelp forests grow fast.</p>")
    (tmp_path / "notes" / "bad.pdf").write_bytes(b"%PDF-1.7 not really")
    (tmp_path / "notes" / ".hidden" / "secret.md").write_text("never read")

    done = wayline.wayline("ingest", str(tmp_path / "notes"))

    assert done.returncode == 1
    assert "2 documents ready, 2 chunks, 1 failed" in done.stdout
    assert re.search(r"failed notes/bad\.pdf: \S", done.stderr)
    assert "notes/sea.md" in wayline.wayline("search", "who counts the waves?").stdout


def test_ingesting_a_file_again_replaces_it(wayline: Installed, tmp_path: Path):
    file = tmp_path / "once.md"
    for text in ("The first text names a walrus.", "The second text names a narwhal."):
        file.write_text(text)
        [document] = wayline.run_json("ingest", str(file))["documents"]

    found = wayline.run_json("search", "walrus narwhal text")["hits"]

    assert [hit["text"] for hit in found if hit["document_id"] == document["document_id"]] == [
        "The second text names a narwhal."
    ]


async def test_a_bare_publisher_gets_the_result_on_the_subject_it_named(wayline: Installed):
    bus = await nats.connect(f"nats://127.0.0.1:{wayline.nats_port}")
    replies = await bus.subscribe("replies.default.mine")

    await bus.publish(
        "jobs.submit.default",
        b'{"agent": "assistant", "input": "What is a job?"}',
        headers={"Nats-Msg-Id": "bare-1", "Wayline-Reply-To": "replies.default.mine"},
    )
    result = json.loads((await replies.next_msg(timeout=20)).data)
    await bus.close()

    assert (result["job"]["job_id"], result["job"]["status"]) == ("bare-1", "completed")


def test_the_doctor_finds_nothing_wrong(wayline: Installed):
    report = wayline.run_json("doctor")

    assert report["healthy"]
    states = {finding["about"]: finding["state"] for finding in report["findings"]}
    assert states["streams"] == states["sync"] == states["pgvector"] == states["gateway"] == "ok"


def test_migrating_again_changes_nothing(wayline: Installed):
    assert wayline.run_json("migrate") == {"changes": []}


def test_capacity_says_what_is_held_and_by_whom(wayline: Installed):
    held = wayline.run_json("capacity")
    shown = wayline.wayline("capacity")

    [log] = [one for one in held["streams"] if one["name"] == "EVENTS"]
    assert (log["max_bytes"], log["max_age_s"]) == (8 * 1024**3, 30 * 86_400)
    assert log["bytes"] > 0 and log["full"] < 0.01
    assert log["tenants"] == {"default": log["messages"]}
    assert held["schemas"]["tracing"] > 0
    assert shown.stdout.splitlines()[0].count("\t") == 7


def test_what_is_chosen_for_a_stream_stays(wayline: Installed):
    chosen = wayline.wayline("migrate", "--max-bytes", "DEAD=2GiB", "--max-days", "DEAD=60")
    again = wayline.wayline("migrate")
    less = wayline.wayline("migrate", "--max-days", "DEAD=30")
    unknown = wayline.wayline("migrate", "--max-days", "SUBMIT=30")
    short = wayline.wayline("migrate", "--max-days", "EVENTS=14")
    senseless = wayline.wayline("migrate", "--max-bytes", "DEAD")
    [dead] = [one for one in wayline.run_json("capacity")["streams"] if one["name"] == "DEAD"]

    assert chosen.stdout == "stream DEAD: max_age, max_bytes corrected\n", chosen.stdout + chosen.stderr
    assert again.stdout == "nothing to change\n"
    assert (less.returncode, "--allow-shrink" in less.stderr) == (1, True), less.stdout + less.stderr
    assert (unknown.returncode, "there is no SUBMIT" in unknown.stderr) == (2, True), unknown.stderr
    assert (short.returncode, "needs more than 14 days" in short.stderr) == (2, True), short.stderr
    assert (senseless.returncode, "write NAME=VALUE" in senseless.stderr) == (1, True)
    assert (dead["max_bytes"], dead["max_age_s"]) == (2 * 1024**3, 60 * 86_400)


def test_a_second_up_says_who_is_there(wayline: Installed):
    done = wayline.wayline("up")

    assert wayline.process is not None
    assert (done.returncode, done.stdout) == (1, "")
    assert f"process {wayline.process.pid}" in done.stderr and "WAYLINE_DATA_DIR" in done.stderr
    assert wayline.note is not None


def test_secrets_are_closed_to_others_and_in_no_log(wayline: Installed):
    keys = json.loads((wayline.data / "credentials" / "keys.json").read_text())
    secrets = [*keys["seeds"].values(), *keys["passwords"].values(), (wayline.data / "postgres/password").read_text()]
    told = wayline.output.read_text() + (wayline.data / "logs" / "wayline.log").read_text()

    assert not [secret for secret in secrets if secret.strip() in told]
    for path in (wayline.data / "credentials").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE((wayline.data / "credentials").stat().st_mode) == 0o700


async def test_grafana_reads_every_tenants_traces_and_nothing_else(wayline: Installed):
    lines = (wayline.data / "credentials" / "grafana.env").read_text().splitlines()
    conn = await asyncpg.connect(dict(line.split("=", 1) for line in lines)["WAYLINE_POSTGRES_DSN"])
    try:
        assert await conn.fetchval("SELECT count(*) FROM tracing.jobs") > 0
        for refused in ("SELECT 1 FROM router.agents", "SELECT 1 FROM gateway.api_keys"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await conn.fetchval(refused)
        await conn.execute("SET default_transaction_read_only = off")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await conn.execute("UPDATE tracing.jobs SET status = 'failed'")
    finally:
        await conn.close()


def test_a_killed_bus_is_started_again_and_jobs_go_on(wayline: Installed):
    assert wayline.process is not None
    before = set(children_of(wayline.process.pid))
    bus = next(pid for pid in before if b"nats-server" in Path(f"/proc/{pid}/cmdline").read_bytes())

    os.kill(bus, signal.SIGKILL)
    asyncio.run(until(lambda: "NATS is back" in wayline.output.read_text(), why="the bus is started again"))
    done = wayline.wayline("run", "What is a job?", "--json")

    assert json.loads(done.stdout)["status"] == "completed"


def test_documents_are_shown_listed_and_deleted_by_name(wayline: Installed, tmp_path: Path):
    for name in ("one.md", "two.md", "three four?.md"):
        (tmp_path / name).write_text(f"A text named {name}.")
    wayline.wayline("ingest", str(tmp_path))
    folder = tmp_path.name

    [shown] = wayline.run_json("documents", "list", "--name", f"{folder}/two*")["documents"]
    first = wayline.wayline("documents", "list", "--limit", "1", "--name", f"{folder}/*")
    by_name = wayline.run_json("documents", "show", f"{folder}/three four?.md")
    deleted = wayline.wayline("documents", "delete", f"{folder}/one.md")
    again = wayline.wayline("documents", "delete", f"{folder}/one.md")

    assert shown["name"] == f"{folder}/two.md"
    assert "there are more: wayline documents list --name" in first.stdout
    assert wayline.run_json("documents", "show", by_name["document_id"]) == by_name
    assert deleted.returncode == 0
    assert again.returncode == 1
    assert again.stderr.startswith(f"wayline: no document has the name or id '{folder}/one.md'")


def test_ingest_says_what_of_a_folder_it_skipped_and_why(wayline: Installed, tmp_path: Path):
    (tmp_path / "config.yaml").write_text("harbour: north\n")
    (tmp_path / "LICENSE").write_text("Permission is granted to the harbour master.")
    (tmp_path / "program").write_bytes(b"\x7fELF\x00\x00")

    done = wayline.wayline("ingest", str(tmp_path))

    assert done.returncode == 3
    assert "2 documents ready, 2 chunks, 0 failed, 1 skipped" in done.stdout
    assert f"skipped {tmp_path.name}/program: binary data of no kind that is read" in done.stderr


def test_a_check_before_an_upgrade_says_what_is_left_to_do(wayline: Installed):
    before = wayline.run_json("upgrade", "--check")
    accounts = wayline.data / "nats" / "accounts.conf"
    text = accounts.read_text()
    admin = dict(line.split("=", 1) for line in (wayline.data / "credentials" / "admin.env").read_text().splitlines())
    dsn, newest = (
        admin["WAYLINE_POSTGRES_DSN"],
        "SELECT max(version) FROM tracing.applied_migrations WHERE version < 'f'",
    )
    forget = f"UPDATE tracing.applied_migrations SET version = 'x' || version WHERE version = ({newest})"
    try:
        accounts.write_text(text.replace('"tenants.stored.*",', "", 1))
        run(run_sql(dsn, forget))
        left = wayline.wayline("upgrade", "--check", "--json")
    finally:
        accounts.write_text(text)
        run(run_sql(dsn, "UPDATE tracing.applied_migrations SET version = substr(version, 2) WHERE version LIKE 'x%'"))

    assert (before["done"], before["steps"]) == (True, [])
    assert {one["service"] for one in before["replicas"]} == {name.replace("-", "_") for name in before["order"]}
    assert {one["version"] for one in before["replicas"]} == {f"{before['version']} ({before['commit']})"}
    told = json.loads(left.stdout)
    assert (left.returncode, told["done"], told["blocked"]) == (1, False, False)
    assert [step["kind"] for step in told["steps"]] == ["note", "rights", "migrate"]
    assert told["steps"][0]["todo"] == "its tables serve this version too"
    assert "wayline credentials write" in told["steps"][1]["todo"]


def test_a_backup_restored_on_other_ports_has_its_jobs(wayline: Installed, empty: Installed):
    backup, keys = str(wayline.data.parent / "backup.tar"), Path("credentials") / "keys.json"
    job = last_job(wayline)
    wayline.run_json("backup", backup)
    beside = wayline.wayline("restore", backup, "--replace", "data")
    other = wayline.wayline("restore", backup, "--replace", "other")
    assert (beside.returncode, other.returncode) == (1, 1)
    assert "already runs" in beside.stderr
    assert "this installation is called data. Nothing was changed" in other.stderr
    assert empty.run_json("restore", backup, "--dry-run")["streams"]["EVENTS"] > 0
    assert not empty.data.exists()

    done = empty.wayline("restore", backup)
    assert done.returncode == 0, done.stdout + done.stderr
    empty.start()

    assert empty.run_json("jobs", "show", job)["status"] == "completed"
    assert empty.run_json("run", "What is a job?")["status"] == "completed"
    ciphers = [json.loads((one.data / keys).read_text())["ciphers"] for one in (wayline, empty)]
    assert ciphers[0] == ciphers[1]
    report = empty.run_json("doctor")
    assert report["healthy"], report
    empty.stop()
    again = empty.wayline("restore", backup)
    assert again.returncode == 1
    assert "there is data already" in again.stderr and "--replace data" in again.stderr
