"""What a check before an upgrade finds, from what the bus and the database say."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner

from wayline.chassis.access.accounts import render_accounts
from wayline.chassis.access.permissions import IDENTITIES
from wayline.chassis.running_version import RunningVersion
from wayline.contracts.errors import Unavailable
from wayline.contracts.events import read_event
from wayline.embedded import free_port
from wayline.standalone.cli import app
from wayline.standalone.services import MEMBERS
from wayline.standalone.settings import Settings
from wayline.standalone.setup.credentials import Credentials
from wayline.standalone.setup.installation import Installation, ServerAccess
from wayline.standalone.upgrade import check_upgrade
from wayline.standalone.upgrade.bus_changes import missing_rights
from wayline.standalone.upgrade.check_upgrade import UpgradeOutcome, outcome_of
from wayline.standalone.upgrade.older_replicas import named_older
from wayline.standalone.upgrade.open_jobs import unreadable
from wayline.standalone.upgrade.pending_migrations import held_up
from wayline.standalone.upgrade.replicas import BEFORE, ORDER, Replica, find_replicas, restarts, sorted_replicas
from wayline.standalone.upgrade.upgrade_step import StepKind, UpgradeStep
from wayline.store.migration_files import parse_migration

HERE = RunningVersion("0.2.0", "0123abc")
EVENT = {"job_id": "j", "seq": 1, "at": "2026-11-26T00:00:00Z", "trace": {"trace_id": "a" * 32, "span_id": "b" * 16}}


def test_every_service_has_a_place_in_the_order_of_restarts():
    assert set(ORDER) == {member.identity for member in MEMBERS}


def test_replicas_are_told_by_the_names_of_their_connections():
    connections = [
        {"name": f"wayline-gateway {HERE}", "ip": "10.0.0.1", "port": 1},
        {"name": "wayline-router", "ip": "10.0.0.2", "port": 2},
        {"name": "wayline-admin 0.2.0", "ip": "10.0.0.3", "port": 3},
        {"name": "someone else", "ip": "10.0.0.4", "port": 4},
        {"ip": "10.0.0.5", "port": 5},
    ]

    found = sorted_replicas(connections)

    assert found == [Replica("router", BEFORE, "10.0.0.2:2"), Replica("gateway", str(HERE), "10.0.0.1:1")]
    [step] = restarts(found, HERE)
    assert (step.kind, step.text) == ("restart", "router: 1 running, of before 0.2.0")


@pytest.mark.parametrize(
    ("kinds", "outcome"),
    [
        ([], "done"),
        (["note"], "done"),
        (["unknown", "note"], "unknown"),
        (["unknown", "migrate"], "left"),
        (["blocked"], "left"),
    ],
)
def test_a_check_that_could_not_look_is_not_done(kinds: list[StepKind], outcome: str):
    assert outcome_of([UpgradeStep(kind, "a", "b") for kind in kinds]) == outcome


@pytest.mark.parametrize(("words", "code"), [([], 3), (["--allow-unknown"], 0)])
def test_an_unknown_outcome_has_an_exit_code_of_its_own(words: list[str], code: int, monkeypatch: pytest.MonkeyPatch):
    async def compared(*_: object, **__: object) -> UpgradeOutcome:
        return UpgradeOutcome.UNKNOWN

    monkeypatch.setattr(check_upgrade, "check", compared)

    assert CliRunner().invoke(app, ["upgrade", "--check", *words]).exit_code == code


def monitored(routes: int) -> httpx2.MockTransport:
    pages = {"/connz": {"connections": [{"name": "wayline-router"}], "total": 1}, "/routez": {"num_routes": routes}}
    return httpx2.MockTransport(lambda request: httpx2.Response(200, json=pages[request.url.path]))


@pytest.mark.parametrize(("routes", "unseen"), [(0, ""), (2, "one server of the cluster")])
async def test_one_server_of_a_cluster_tells_of_its_own_connections_only(
    routes: int, unseen: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    plain, transport = httpx2.AsyncClient, monitored(routes)
    monkeypatch.setattr(httpx2, "AsyncClient", lambda **options: plain(transport=transport, **options))
    settings = Settings.model_validate({"nats_monitor_url": "http://127.0.0.1:1"})
    access = ServerAccess("nats://a", "postgresql://a/b", Credentials({}, {}), own_bus=False)

    found = await find_replicas(access, settings, Installation(tmp_path))

    assert [one.service for one in found.replicas] == ["router"]
    assert (unseen in found.unseen, bool(found.unseen)) == (True, bool(unseen))


async def test_replicas_that_nobody_tells_of_are_not_taken_for_none(tmp_path: Path):
    access = ServerAccess("nats://a", "postgresql://a/b", Credentials({}, {}), own_bus=False)

    found = await find_replicas(access, Settings.model_validate({}), Installation(tmp_path))

    assert (found.replicas, "not asked for" in found.unseen) == ([], True)


def test_services_of_the_last_release_are_named_with_their_numbers():
    replicas = [Replica("executor", BEFORE, "a"), Replica("executor", BEFORE, "b"), Replica("router", "0.2.0", "c")]

    assert named_older([*replicas, Replica("tool_registry", BEFORE, "d")]) == "2 executor, 1 tool-registry"
    assert named_older(replicas[2:]) == ""


async def test_a_monitoring_page_that_is_away_is_said_in_one_line(tmp_path: Path):
    settings = Settings.model_validate({"nats_monitor_url": f"http://127.0.0.1:{free_port()}"})
    access = ServerAccess("nats://a", "postgresql://a/b", Credentials({}, {}), own_bus=False)

    with pytest.raises(Unavailable, match="it does not say who is connected"):
        await find_replicas(access, settings, Installation(tmp_path))


def test_another_build_of_the_same_version_is_to_be_restarted():
    found = restarts([Replica("executor", "0.2.0 (ffff000)", "x"), Replica("router", str(HERE), "y")], HERE)

    assert [step.text for step in found] == ["executor: 1 running, of 0.2.0 (ffff000)"]


@pytest.mark.parametrize(
    ("up", "told"),
    [
        ("\nALTER TABLE jobs ADD COLUMN a text;", "locks jobs; asks for it 300 ms at a time"),
        ("\nCREATE TABLE own (id text);\nCREATE INDEX own_by_id ON own (id);", "locks no table"),
        (" transaction:false\nCREATE INDEX CONCURRENTLY a ON jobs (a);", "makes indexes beside the services' work"),
    ],
)
def test_a_migration_says_what_it_holds_up(up: str, told: str):
    assert held_up(parse_migration("0001_a.sql", f"-- migrate:up{up}\n-- migrate:down\n")) == told


def test_a_log_with_a_newer_event_cannot_be_gone_on_from():
    known = read_event({**EVENT, "type": "job.resumed", "why": "approval"})
    strange = read_event({**EVENT, "seq": 2, "type": "job.teleported"})

    assert unreadable([known]) == ""
    assert unreadable([known, strange]) == "events of a newer version: job.teleported"


def test_missing_rights_are_named_by_account():
    keys = dict.fromkeys(IDENTITIES, "U" * 56)
    wanted = render_accounts(keys, admin_key="A" * 56)
    present = wanted.replace('"tenants.stored.*",', "", 1)

    assert missing_rights(wanted, wanted) == {}
    [(account, missing)] = missing_rights(wanted, present).items()
    assert account == "WAYLINE" or account in {one.account for one in IDENTITIES.values()}
    assert any("tenants.stored.*" in one for one in missing)


def test_an_upgrade_is_looked_at_and_never_made():
    done = CliRunner().invoke(app, ["upgrade"])

    assert done.exit_code == 2
    assert "name --check" in done.stderr
