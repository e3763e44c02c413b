"""Credentials are made once, kept closed, and extended when a newer Wayline knows more identities."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import nkeys
import pytest
from pydantic import SecretStr

from wayline.chassis.access.accounts import render_accounts
from wayline.executor.adapters.snapshots import snapshot_keys
from wayline.standalone.errors import DataDirInvalid
from wayline.standalone.launch import serve, up
from wayline.standalone.servers.nats_config import render
from wayline.standalone.services import MEMBERS
from wayline.standalone.settings import Settings
from wayline.standalone.setup import credentials
from wayline.standalone.setup.credentials import load_credentials, new_service_key, save_credentials
from wayline.standalone.setup.installation import Installation, ServerAccess, read_environment, write_environments
from wayline.standalone.setup.migrate import find_servers
from wayline.tool_registry.secrets.secret_keys import SecretKeys


def test_the_second_start_finds_the_credentials_of_the_first(tmp_path: Path):
    first = load_credentials(tmp_path / "keys.json", identities=["router"], roles=["router"])
    second = load_credentials(tmp_path / "keys.json", identities=["router"], roles=["router"])

    assert first == second
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600


def test_a_new_identity_gets_a_key_and_the_others_keep_theirs(tmp_path: Path):
    older = load_credentials(tmp_path / "keys.json", identities=["router", "retired"], roles=[])
    newer = load_credentials(tmp_path / "keys.json", identities=["router", "gateway"], roles=["gateway"])

    kept = json.loads((tmp_path / "keys.json").read_text())["seeds"]
    assert newer.seeds["router"] == older.seeds["router"]
    assert set(kept) == {"router", "retired", "gateway"}


def test_a_service_keeps_the_key_with_which_it_encrypts(tmp_path: Path):
    load_credentials(tmp_path / "keys.json", identities=[], roles=[])
    first = load_credentials(tmp_path / "keys.json", identities=[], roles=[], keyed=["tool_registry", "executor"])
    second = load_credentials(tmp_path / "keys.json", identities=[], roles=[], keyed=["tool_registry", "executor"])

    assert first == second
    assert SecretKeys.parse(first.service_keys["tool_registry"]).newest is not None
    key_id = first.service_keys["executor"].partition(":")[0]
    assert snapshot_keys(SecretStr(first.service_keys["executor"])).newest == key_id


def test_credentials_that_are_read_take_back_no_rotation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "keys.json"
    made = load_credentials(path, identities=[], roles=[], keyed=["executor"])
    rotated = replace(made, service_keys={"executor": new_service_key()})

    def parsed(text: str) -> object:
        # Another command ends its rotation right after this one has read.
        monkeypatch.undo()
        save_credentials(path, rotated)
        return json.loads(text)

    monkeypatch.setattr(credentials.json, "loads", parsed)
    load_credentials(path, identities=[], roles=[], keyed=["executor"])

    assert load_credentials(path, identities=[], roles=[], keyed=["executor"]) == rotated


def test_a_seed_matches_the_public_key_given_to_the_bus(tmp_path: Path):
    credentials = load_credentials(tmp_path / "keys.json", identities=["router"], roles=[])

    pair = nkeys.from_seed(credentials.seeds["router"].encode())
    assert credentials.public_keys()["router"].encode() == pair.public_key


def test_a_foreign_key_file_is_refused_as_such(tmp_path: Path):
    (tmp_path / "keys.json").write_text("[]")

    with pytest.raises(DataDirInvalid, match=r"keys\.json: this is not the credentials file"):
        load_credentials(tmp_path / "keys.json", identities=[], roles=[])


def test_what_is_secret_shows_in_no_repr(tmp_path: Path):
    credentials = load_credentials(tmp_path / "keys.json", identities=["router"], roles=["router"])
    access = ServerAccess("nats://u:secret@here", "postgresql://u:secret@here/db", credentials, own_bus=True)

    shown = repr(access)
    assert "secret" not in shown
    assert access.nats_address == "nats://here"
    assert not [value for value in (*credentials.seeds.values(), *credentials.passwords.values()) if value in shown]


def test_the_bus_configuration_has_only_public_keys_and_syncs_writes(tmp_path: Path):
    identities = [*(member.identity for member in MEMBERS), "admin"]
    credentials = load_credentials(tmp_path / "keys.json", identities=identities, roles=[])

    keys = credentials.public_keys()
    text = render(render_accounts(keys, admin_key=keys["admin"]))

    assert "sync_interval: always" in text
    assert "http:" not in text
    assert not [seed for seed in credentials.seeds.values() if seed in text]
    assert all(key in text for key in keys.values())
    assert 'http: "127.0.0.1:8222"' in render("", monitor_port=8222)


def test_a_service_is_given_its_own_role_at_the_administrators_address(tmp_path: Path):
    credentials = load_credentials(tmp_path / "keys.json", identities=["executor"], roles=["router"])
    access = ServerAccess(
        "nats://b:4222", "postgresql://root:pw@db:5433/wayline?sslmode=require", credentials, own_bus=False
    )

    dsn = access.dsn_of("wayline_router", "router")

    password = credentials.passwords["router"]
    assert dsn == f"postgresql://wayline_router:{password}@db:5433/wayline?sslmode=require"


def secured(tmp_path: Path, **variables: str) -> tuple[Installation, Settings]:
    installation = Installation(tmp_path)
    installation.prepare()
    return installation, Settings(nats_url="nats://theirs:4222", postgres_dsn="postgresql://root@db/w", **variables)  # type: ignore[arg-type]


def kept_seeds(installation: Installation) -> dict[str, str | None]:
    names = (*(member.identity for member in MEMBERS), "admin")
    return {name: read_environment(installation, name).get("WAYLINE_NATS_SEED") for name in names}


def test_an_own_buss_admin_seed_is_written_for_the_admin_only(tmp_path: Path):
    theirs = load_credentials(tmp_path / "theirs.json", identities=["admin"], roles=[]).seeds["admin"]
    installation, settings = secured(tmp_path / "data", nats_seed=theirs)

    access = find_servers(settings, installation)
    write_environments(installation, access)

    own = installation.load_credentials().seeds
    assert access.seed_of("admin") == theirs
    assert kept_seeds(installation) == {
        **{member.identity: own[member.identity] for member in MEMBERS},
        "admin": theirs,
    }
    # The second time nobody needs to say it again.
    again = find_servers(settings.model_copy(update={"nats_url": None, "nats_seed": None}), installation)
    assert (again.nats_url, again.seed_of("admin"), again.own_bus) == ("nats://theirs:4222", theirs, False)


def test_a_bus_without_authentication_needs_no_seed(tmp_path: Path):
    installation, settings = secured(tmp_path)

    write_environments(installation, find_servers(settings, installation))

    assert set(kept_seeds(installation).values()) == {None}


def test_a_bus_with_our_administrator_knows_all_of_us(tmp_path: Path):
    own = Installation(tmp_path)
    own.prepare()
    installation, settings = secured(tmp_path, nats_seed=own.load_credentials().seeds["admin"])

    access = find_servers(settings, installation)

    assert access.own_bus
    assert access.environment_of(MEMBERS[0])["WAYLINE_NATS_SEED"] == own.load_credentials().seeds[MEMBERS[0].identity]


@pytest.mark.parametrize(("identity", "setting"), [("executor", "snapshot_keys"), ("tool_registry", "keys")])
def test_every_process_of_a_service_is_given_the_same_keys(tmp_path: Path, identity: str, setting: str):
    installation = Installation(tmp_path)
    installation.prepare()
    credentials = installation.load_credentials()
    access = ServerAccess("nats://x:1", "postgresql://postgres@x/wayline", credentials, own_bus=True)
    write_environments(installation, access)
    [member] = [member for member in MEMBERS if member.identity == identity]

    kept = {setting: credentials.service_keys[identity]}

    assert up.keys_of(member, access) == serve.keys_of(installation, member) == kept
    assert installation.load_credentials().service_keys == credentials.service_keys
