"""How `wayline up` begins and ends, also badly, and what is there afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from typing import Any

import pytest

from wayline.embedded.process import is_alive
from wayline.standalone.servers.watch import DEATHS_MAX
from wayline.testkit import Database, until
from wayline.testkit.fixtures import NatsFactory, run
from wayline.testkit.service_starts import start_command

from .conftest import END_WITHIN_S, START_WITHIN_S, Installed

# One after another: most start servers of their own.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def servers(shared: Installed) -> Installed:
    """Servers without services; the last test that asks for them ends them."""
    shared.start("--servers-only")
    return shared


def test_jobs_are_kept_across_an_orderly_end_and_a_kill(fresh: Installed):
    # As its users start it, a new Python.
    fresh.is_up_forked = False
    fresh.start()
    job = fresh.run_json("run", "What is a job?")["job_id"]

    # In order: nothing is left of it, and it says so with 0.
    assert fresh.stop(signal.SIGTERM) == 0
    assert not (fresh.data / "up.json").exists()

    # What a new Python imports was seen once.
    fresh.is_up_forked = True
    fresh.start()
    assert fresh.run_json("jobs", "show", job)["status"] == "completed"

    # By force: the servers end with it all the same.
    fresh.stop(signal.SIGKILL)

    fresh.start()
    assert fresh.run_json("jobs", "show", job)["status"] == "completed"
    assert fresh.run_json("doctor")["healthy"]
    assert fresh.stop(signal.SIGINT) == 0


def test_a_signal_during_the_start_leaves_nothing(empty: Installed):
    empty.begin()
    run(until(empty.servers, within=START_WITHIN_S, why="a server is being started"))

    assert empty.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize("variable", ["WAYLINE_HTTP_PORT", "WAYLINE_NATS_PORT"])
def test_a_taken_port_is_said_with_the_variable_that_changes_it(empty: Installed, variable: str):
    port = empty.http_port if variable == "WAYLINE_HTTP_PORT" else empty.nats_port
    with socket.create_server(("127.0.0.1", port)):
        done = empty.wayline("up")

    assert done.returncode == 1
    assert f"port {port}" in done.stderr and variable in done.stderr
    assert done.stderr.count("\n") == 1


def test_services_run_as_processes_beside_servers_only(servers: Installed):
    groups = (("gateway", "router"), ("executor",), ("retrieval", "tool-registry", "tracing"))
    where: dict[str, Any] = {"cwd": servers.data.parent, "log": servers.output, "env": servers.env}
    services = [start_command("serve", *names, **where) for names in groups]
    job = servers.run_json("run", "What is a job?") if _is_up(servers) else None
    assert job is not None and job["status"] == "completed"
    for service in services:
        service.process.send_signal(signal.SIGTERM)
    assert all(run(service.wait(within_s=END_WITHIN_S)) for service in services)
    assert [service.process.returncode for service in services] == [0, 0, 0]


def _is_up(fresh: Installed) -> bool:
    return run(until(lambda: fresh.output.read_text().count("[info     ] ready") == 6, within=60, why="all are ready"))


def test_the_doctor_names_what_is_missing_and_migrate_repairs_it(servers: Installed):
    asyncio.run(_break(servers))

    found = servers.wayline("doctor")
    assert found.returncode == 1
    assert "consumer RUN/interactive is missing" in found.stdout
    assert "stream SIGNALS: max_msgs_per_subject differ" in found.stdout
    assert "schema router" in found.stdout and "was never migrated" in found.stdout
    assert "functions/partitions.sql not applied" in found.stdout
    assert found.stdout.count("run `wayline migrate`") == 3

    repaired = servers.wayline("migrate")
    assert "consumer RUN/interactive created" in repaired.stdout
    lanes = ("interactive", "batch", "interactive_backlog", "batch_backlog", "interactive_waiting", "batch_waiting")
    assert servers.run_json("migrate", "--ack-wait", "3") == {
        "changes": [f"consumer RUN/{lane}: ack_wait corrected" for lane in lanes]
    }
    assert servers.run_json("doctor")["healthy"]


async def _break(fresh: Installed) -> None:
    import asyncpg

    from wayline.chassis import Bus, BusSettings

    lines = (fresh.data / "credentials" / "admin.env").read_text().splitlines()
    env = dict(line.split("=", 1) for line in lines)
    settings = BusSettings(nats_url=env["WAYLINE_NATS_URL"], nats_seed=env["WAYLINE_NATS_SEED"])
    bus = await Bus.connect(settings, service="admin", exit_when_closed=False)
    await bus.js.delete_consumer("RUN", "interactive")
    signals = (await bus.js.stream_info("SIGNALS")).config
    await bus.js.update_stream(signals.evolve(max_msgs_per_subject=7))
    await bus.close()
    conn = await asyncpg.connect(env["WAYLINE_POSTGRES_DSN"])
    await conn.execute("DROP SCHEMA router CASCADE")
    await conn.execute("UPDATE tracing.applied_migrations SET checksum = '' WHERE version = 'functions/partitions.sql'")
    await conn.close()


def test_the_doctor_of_a_place_where_nothing_ever_ran(empty: Installed):
    with socket.create_server(("127.0.0.1", empty.http_port)):
        found = empty.wayline("doctor")

    assert found.returncode == 1
    assert f"{empty.http_port}, wanted for the gateway, is taken" in found.stdout
    assert "set WAYLINE_HTTP_PORT to a free port" in found.stdout
    assert empty.wayline("doctor").returncode == 0


def test_the_doctor_names_a_dead_mcp_server_and_a_stopped_platform(fresh: Installed):
    fresh.more["WAYLINE_TOOL_REGISTRY_SERVERS"] = '[{"name": "crm", "url": "http://127.0.0.1:9/mcp"}]'
    fresh.start()
    found = fresh.wayline("doctor")
    saved = fresh.wayline("agents", "put", "helper", "-", stdin='{"tools": ["search_knowledge", "crm__find"]}')
    fresh.stop()
    stopped = fresh.wayline("doctor")

    assert found.returncode == 1
    assert "the MCP server 'crm' does not answer: " in found.stdout
    assert (saved.returncode, saved.stdout) == (0, "helper is saved as version 1\n")
    assert "warning: no tool is called 'crm__find'; not reached at the moment: crm\n" in saved.stderr
    assert stopped.returncode == 0
    assert "no problem found; Wayline is not running" in stopped.stdout


def test_the_doctor_sees_credentials_that_others_may_read(servers: Installed):
    keys = servers.data / "credentials" / "keys.json"
    keys.chmod(0o644)

    found = servers.wayline("doctor")
    keys.chmod(0o600)

    assert found.returncode == 1
    assert f"chmod go= {keys}" in found.stdout


def test_commands_without_a_gateway_name_the_command_that_starts_one(empty: Installed):
    done = empty.wayline("run", "hello")

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "`wayline up`" in done.stderr


async def test_servers_of_ones_own_are_used(empty: Installed, nats_factory: NatsFactory, database: Database):
    bus = await nats_factory()
    empty.more = {"WAYLINE_NATS_URL": bus.url, "WAYLINE_POSTGRES_DSN": database.dsn}

    await asyncio.to_thread(empty.start)
    job = await asyncio.to_thread(empty.run_json, "run", "What is a job?")
    healthy = await asyncio.to_thread(empty.run_json, "doctor")

    assert (job["status"], empty.servers()) == ("completed", [])
    # The bus of that fixture writes to disk every two minutes, and only its monitoring page would tell.
    assert {finding["about"]: finding["state"] for finding in healthy["findings"]}["sync"] == "note"
    assert await asyncio.to_thread(empty.stop) == 0


@pytest.mark.parametrize("variable", ["WAYLINE_NATS_URL", "WAYLINE_POSTGRES_DSN"])
def test_an_unreachable_own_server_is_reported_in_one_line(fresh: Installed, variable: str):
    nowhere = {"WAYLINE_NATS_URL": "nats://127.0.0.1:9", "WAYLINE_POSTGRES_DSN": "postgresql://a:b@127.0.0.1:9/c"}

    done = fresh.wayline("up", "--servers-only", **{variable: nowhere[variable]}, WAYLINE_CONNECT_WAIT_S="0.2")

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert variable in done.stderr and "a:b" not in done.stderr


def test_a_server_that_keeps_dying_ends_the_run(servers: Installed):
    process = servers.process
    assert process is not None
    pids: list[int] = []

    def came_back(times: int) -> bool:
        printed = servers.output.read_text()
        assert not process.exited, printed
        return printed.count("NATS is back") == times

    for death in range(1, DEATHS_MAX + 1):
        pids = servers.servers()
        os.kill(next(pid for pid in pids if _is_nats(pid)), signal.SIGKILL)
        if death < DEATHS_MAX:
            run(until(lambda times=death: came_back(times), why="NATS is back"))

    assert run(process.wait(within_s=END_WITHIN_S))
    assert process.process.returncode == 1
    assert f"NATS ended {DEATHS_MAX} times" in servers.output.read_text()
    assert not any(is_alive(pid) for pid in pids)


def _is_nats(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as line:
            return b"nats-server" in line.read()
    except OSError:
        return False


@pytest.mark.parametrize(
    ("variable", "value"), [("WAYLINE_HTTP_HOST", "0.0.0.0"), ("WAYLINE_EXECUTOR_INTERACTIVE_SLOTS", "many")]
)
def test_a_setting_that_one_service_cannot_use_is_one_line(fresh: Installed, variable: str, value: str):
    fresh.more[variable] = value
    fresh.begin()
    process = fresh.process
    assert process is not None
    assert run(process.wait(within_s=START_WITHIN_S))

    assert process.process.returncode == 2
    output = fresh.output.read_text()
    assert "Traceback" not in output
    assert output.splitlines()[-1].startswith(f"wayline: {variable}: ")
