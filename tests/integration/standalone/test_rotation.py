"""Keys and passwords are replaced while services run: the old ones hold until every process knows the new."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import asyncpg
import nats
import pytest
from nats.errors import Error
from pydantic import SecretStr

from wayline.chassis import Bus, BusSettings
from wayline.contracts.tenant_secrets import PutSecret, SecretView
from wayline.contracts.webhooks import WebhookConfig
from wayline.embedded import NatsServer, free_port
from wayline.notifier.app import open_store as open_notifiers_store
from wayline.notifier.app import utc_now
from wayline.notifier.settings import WebhookKeys
from wayline.notifier.webhooks.webhook_table import WebhookTable
from wayline.standalone.backup.take_backup import KEYS, LOGS, take_backup
from wayline.standalone.bus import accounts_file, manage_clients
from wayline.standalone.errors import CannotRotate
from wayline.standalone.launch.serve import bus_settings, keys_of
from wayline.standalone.rotation import rotate as rotation
from wayline.standalone.rotation.rotated_installation import RotatedInstallation
from wayline.standalone.rotation.rotation_step import RotationOutcome, RotationStep
from wayline.standalone.rotation.service_keys import SECRET_KEYS, rotate_keys
from wayline.standalone.servers.embedded import nats_server
from wayline.standalone.services import ServiceGroup, members
from wayline.standalone.settings import Settings
from wayline.standalone.setup.credentials import Credentials, new_service_key
from wayline.standalone.setup.installation import Installation, ServerAccess, read_environment, write_environments
from wayline.standalone.setup.migrations import migrate_all
from wayline.store import Store
from wayline.testkit import Database
from wayline.testkit.walks import seeds

LOGIN_REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidPasswordError)


@dataclass
class Installed:
    """A data directory with an embedded bus and a database of its own."""

    settings: Settings
    installation: Installation
    server: NatsServer

    @property
    def rotated(self) -> RotatedInstallation:
        return RotatedInstallation(self.settings, self.installation, rows_wait_s=0.3)

    @property
    def credentials(self) -> Credentials:
        return self.installation.load_credentials()

    async def rotate(self, what: str, *, restarted: bool = False) -> RotationStep:
        [done] = await rotation.rotate(self.settings, [what], restarted=restarted)
        return done

    def written(self, service: str, variable: str) -> str:
        return read_environment(self.installation, service)[variable]

    async def is_accepted(self, seed: str) -> bool:
        """Return whether the bus takes a connection."""
        try:
            nc = await nats.connect(self.server.url, nkeys_seed_str=seed, allow_reconnect=False, error_cb=_quiet)
        except Error as error:
            assert "Authorization Violation" in str(error)
            return False
        await nc.close()
        return True

    @asynccontextmanager
    async def connected(self, service: str, *key_ids: str) -> AsyncIterator[Bus]:
        """Connect as a process of a service does that was started now."""
        settings = BusSettings(
            nats_url=self.server.url,
            nats_seed=self.written(service, "WAYLINE_NATS_SEED"),
            nats_accounts=True,
            postgres_dsn=self.written(service, "WAYLINE_POSTGRES_DSN") if service != "executor" else None,
        )
        bus = await Bus.connect(settings, service=service, exit_when_closed=False, key_ids=key_ids)
        try:
            yield bus
        finally:
            await bus.close()


async def _quiet(_: Exception) -> None:
    return None


async def may_log_in(dsn: str) -> bool:
    """Return whether the database takes a connection."""
    try:
        await (await asyncpg.connect(dsn)).close()
    except LOGIN_REFUSED:
        return False
    return True


@pytest.fixture
async def installed(tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Installed]:
    # One server, on this machine: no other one has to be waited for.
    monkeypatch.setattr(accounts_file, "SERVERS_WITHIN_S", 0.02)
    settings = Settings(data_dir=tmp_path, nats_port=free_port(), postgres_dsn=database.dsn)
    installation = Installation(tmp_path)
    installation.prepare()
    credentials = installation.load_credentials()
    server = nats_server(installation, settings, credentials)
    await server.start()
    access = ServerAccess(server.url, database.dsn, credentials, own_bus=True)
    async for _ in migrate_all(access, settings.limits):
        pass
    write_environments(installation, access)
    yield Installed(settings, installation, server)
    await server.kill()


async def test_an_old_nkey_holds_until_nobody_uses_it(installed: Installed):
    _, client, _ = await asyncio.to_thread(
        manage_clients.create, "shop", tenant="acme", scopes=["submit"], settings=installed.settings
    )
    old, admin = installed.credentials.seeds["router"], installed.credentials.seeds["admin"]

    async with installed.connected("router") as before:
        begun = await installed.rotate("nkeys")
        new = installed.written("router", "WAYLINE_NATS_SEED")
        assert begun.outcome is RotationOutcome.RESTART and new != old
        assert await installed.is_accepted(old) and await installed.is_accepted(new)
        held = await installed.rotate("nkeys")
        assert (held.outcome, held.told) == (RotationOutcome.WAITING, "still connected with an old key: router (1)")
        assert (await rotation.status(installed.settings))[0] == {
            "what": "nkeys",
            "phase": "taken",
            "held_by": "router (1)",
        }
        assert before.nc.is_connected

    async with installed.connected("router"):
        assert (await installed.rotate("nkeys")).outcome is RotationOutcome.FINISHED

        assert not await installed.is_accepted(old) and not await installed.is_accepted(admin)
        assert await installed.is_accepted(new) and await installed.is_accepted(client)
    assert (await rotation.status(installed.settings))[0]["phase"] == "none"
    # And once more, by the new administrator.
    assert (await installed.rotate("nkeys")).outcome is RotationOutcome.RESTART


async def test_an_old_password_holds_until_nobody_is_logged_in_by_it(installed: Installed):
    old = installed.written("router", "WAYLINE_POSTGRES_DSN")
    before = await Store.connect(old, schema="router")

    assert (await installed.rotate("passwords")).outcome is RotationOutcome.RESTART
    new = installed.written("router", "WAYLINE_POSTGRES_DSN")
    assert await may_log_in(old) and await may_log_in(new)
    held = await installed.rotate("passwords")
    assert held.told == "still logged in with an old password, or about to: wayline_router (1)"
    await before.check()
    await before.close()
    assert (await installed.rotate("passwords")).outcome is RotationOutcome.FINISHED

    assert not await may_log_in(old)
    after = await Store.connect(new, schema="router")
    await after.check()
    await after.close()
    # A migration leaves the roles as they are, and the next rotation goes back to the first ones.
    async for _ in migrate_all(installed.rotated.access, installed.settings.limits):
        pass
    assert not await may_log_in(old) and await may_log_in(new)
    await installed.rotate("passwords")
    assert (await installed.rotate("passwords")).outcome is RotationOutcome.FINISHED
    assert not await may_log_in(new)
    assert await may_log_in(installed.written("router", "WAYLINE_POSTGRES_DSN"))
    assert "//wayline_router:" in installed.written("router", "WAYLINE_POSTGRES_DSN")


async def test_an_idle_process_holds_the_old_password(installed: Installed):
    async with installed.connected("router"), installed.connected("executor"):
        await installed.rotate("passwords")
        held = await installed.rotate("passwords")
        assert held.told == "still logged in with an old password, or about to: wayline_router (1)"
        async with installed.connected("router"):
            assert (await installed.rotate("passwords")).outcome is RotationOutcome.WAITING

    async with installed.connected("router"), installed.connected("executor"):
        assert (await installed.rotate("passwords")).outcome is RotationOutcome.FINISHED


async def test_nobody_tells_of_idle_processes_on_a_bus_of_others(installed: Installed, monkeypatch: pytest.MonkeyPatch):
    await installed.rotate("passwords")
    old = RotatedInstallation.access.fget
    assert old is not None
    monkeypatch.setattr(RotatedInstallation, "access", property(lambda self: replace(old(self), own_bus=False)))

    held = await installed.rotate("passwords")

    assert (held.outcome, "--restarted" in held.next) == (RotationOutcome.WAITING, True)
    assert (await installed.rotate("passwords", restarted=True)).outcome is RotationOutcome.FINISHED


async def test_grafanas_second_role_reads_as_its_first_did(installed: Installed):
    await installed.rotate("passwords")
    await installed.rotate("passwords")

    conn = await asyncpg.connect(installed.written("grafana", "WAYLINE_POSTGRES_DSN"))
    assert await conn.fetchval("SELECT current_user") == "wayline_grafana_second"
    assert await conn.fetchval("SELECT count(*) FROM jobs") == 0
    with pytest.raises(asyncpg.PostgresError):
        await conn.execute("DELETE FROM jobs")
    await conn.close()


async def started(installed: Installed, stack: AsyncExitStack) -> ServiceGroup:
    """Start those that encrypt, as `wayline serve` does."""
    group = ServiceGroup(
        members(["tool-registry", "notifier"]),
        lambda member: bus_settings(installed.installation, member),
        lambda member: keys_of(installed.installation, member),
    )
    await group.start()
    stack.push_async_callback(group.stop, 0)
    return group


async def put_secret(installed: Installed, name: str) -> None:
    async with installed.connected("gateway") as gateway:
        await gateway.ask(PutSecret(tenant="acme", name=name, value=SecretStr("words")), SecretView, timeout_s=10)


async def test_rows_are_encrypted_anew_before_their_old_key_goes(installed: Installed, database: Database):
    first = installed.credentials.service_keys
    old = first["tool_registry"].partition(":")[0]
    async with AsyncExitStack() as stack:
        group = await started(installed, stack)
        await put_secret(installed, "one")
        store = await open_notifiers_store(installed.written("notifier", "WAYLINE_POSTGRES_DSN"))
        webhooks = WebhookTable(store, WebhookKeys.parse(first["notifier"]), utc_now, 5)
        config = WebhookConfig.model_validate({"url": "https://crm.example/hook"})
        await webhooks.put("acme", "crm", config, create=True)

        assert (await installed.rotate("secret-keys")).outcome is RotationOutcome.RESTART
        waiting = await installed.rotate("secret-keys")
        assert waiting.told == "these still do not know the new key: notifier (1), tool_registry (1)"
        await group.stop(0)
        group = await started(installed, stack)
        assert (await installed.rotate("secret-keys")).outcome is RotationOutcome.RESTART
        await put_secret(installed, "two")
        waiting = await installed.rotate("secret-keys")
        assert waiting.told == "these still use the old key: notifier (1), tool_registry (1)"
        await group.stop(0)
        group = await started(installed, stack)
        assert (await installed.rotate("secret-keys")).outcome is RotationOutcome.FINISHED

        last = installed.credentials.service_keys
        conn = await asyncpg.connect(database.dsn)
        sealed = await conn.fetch("SELECT key_id FROM tools.secrets UNION ALL SELECT key_id FROM notifier.webhooks")
        newest = {last[name].partition(":")[0] for name in ("tool_registry", "notifier")}
        assert {row["key_id"] for row in sealed} == newest
        assert old not in last["tool_registry"]
        await conn.close()
        reader = replace(webhooks, keys=WebhookKeys.parse(last["notifier"]))
        assert await reader.seal_again() == 0
        await store.close()


async def test_a_damaged_webhook_keeps_no_other_under_an_old_key(installed: Installed, database: Database):
    old = WebhookKeys.parse(installed.credentials.service_keys["notifier"])
    store = await open_notifiers_store(installed.written("notifier", "WAYLINE_POSTGRES_DSN"))
    webhooks = WebhookTable(store, old, utc_now, 5)
    config = WebhookConfig.model_validate({"url": "https://crm.example/hook"})
    for name in ("crm", "damaged", "erp"):
        await webhooks.put("acme", name, config, create=True)
    conn = await asyncpg.connect(database.dsn)
    await conn.execute("UPDATE notifier.webhooks SET sealed = '\\x0011' WHERE name = 'damaged'")

    both = WebhookKeys({**WebhookKeys.parse(new_service_key()).keys, **old.keys})
    assert await replace(webhooks, keys=both).seal_again() == 2

    kept = await conn.fetch("SELECT name FROM notifier.webhooks WHERE key_id = $1", old.newest)
    assert [row["name"] for row in kept] == ["damaged"]
    await conn.close()
    await store.close()


async def test_an_old_key_stays_while_a_row_needs_it(installed: Installed, database: Database):
    old = installed.credentials.service_keys["tool_registry"].partition(":")[0]
    conn = await asyncpg.connect(database.dsn)
    await conn.execute(
        "INSERT INTO tools.secrets (tenant, name, key_id, sealed) VALUES ('acme', 'x', $1, '\\x00')", old
    )

    for _ in range(2):
        assert (await installed.rotate("secret-keys")).outcome is RotationOutcome.RESTART
    held = await rotate_keys(installed.rotated, SECRET_KEYS, say=lambda _: None)

    assert (held.outcome, held.told) == (
        RotationOutcome.WAITING,
        "still encrypted with an old key: 1 rows of tools.secrets",
    )
    assert old in installed.credentials.service_keys["tool_registry"]
    await conn.execute("DELETE FROM tools.secrets")
    await conn.close()
    assert (await installed.rotate("secret-keys")).outcome is RotationOutcome.FINISHED
    assert old not in installed.written("tool_registry", "WAYLINE_TOOL_REGISTRY_KEYS")


async def test_a_process_with_keys_of_its_own_is_named(installed: Installed):
    await installed.rotate("snapshot-keys")

    async with installed.connected("executor", "its-own"):
        assert (await installed.rotate("snapshot-keys")).told == "these still do not know the new key: executor (1)"
        assert (await installed.rotate("snapshot-keys", restarted=True)).outcome is RotationOutcome.RESTART


async def test_a_bus_that_names_no_process_needs_the_operators_word(installed: Installed):
    seed = installed.written("executor", "WAYLINE_NATS_SEED")
    other = installed.settings.model_copy(update={"nats_url": installed.server.url, "nats_seed": seed})
    await rotation.rotate(other, ["snapshot-keys"])
    keys = installed.credentials.service_keys["executor"]

    [held] = await rotation.rotate(other, ["snapshot-keys"])

    assert (held.outcome, held.told) == (
        RotationOutcome.WAITING,
        "this bus does not say which processes know the new key",
    )
    assert installed.credentials.service_keys["executor"] == keys
    [step] = await rotation.rotate(other, ["snapshot-keys"], restarted=True)
    assert step.outcome is RotationOutcome.RESTART


async def test_old_passwords_are_tried_at_the_server_behind_a_pooler(installed: Installed, database: Database):
    # Where nobody answers.
    pooler = f"postgresql://127.0.0.1:{free_port()}/{database.name}?pool_mode=transaction"
    pooled = installed.settings.model_copy(update={"postgres_dsn": pooler, "postgres_admin_dsn": database.dsn})

    [begun] = await rotation.rotate(pooled, ["passwords"])
    [ended] = await rotation.rotate(pooled, ["passwords"])

    assert (begun.outcome, ended.outcome) == (RotationOutcome.RESTART, RotationOutcome.FINISHED)
    assert installed.written("router", "WAYLINE_POSTGRES_DSN").endswith("?pool_mode=transaction")


async def test_a_rotation_ends_in_a_database_without_the_former_role(installed: Installed, database: Database):
    for _ in range(3):
        await installed.rotate("passwords")
    conn = await asyncpg.connect(database.dsn)
    await conn.execute("DROP ROLE wayline_grafana_second")
    await conn.close()

    assert (await installed.rotate("passwords")).outcome is RotationOutcome.FINISHED


async def test_a_backup_has_the_key_that_a_rotation_took_away_meanwhile(installed: Installed, tmp_path: Path):
    keys = installed.credentials.service_keys
    newer = {**keys, "tool_registry": new_service_key()}

    def rotated(part: str, _: int, done: bool) -> None:
        if part == f"streams/{LOGS[0]}" and done:
            installed.rotated.save("secret-keys", None, service_keys=newer)

    path = tmp_path / "backup"
    await take_backup(installed.rotated.access, installed.installation, path, credentials=True, tell=rotated)

    assert installed.credentials.service_keys == newer
    assert json.loads((path / KEYS).read_text())["ciphers"] == keys


async def test_a_bus_that_does_not_see_the_accounts_is_named(installed: Installed, tmp_path: Path):
    elsewhere = installed.settings.model_copy(update={"nats_accounts_file": tmp_path / "elsewhere.conf"})

    with pytest.raises(CannotRotate, match=r"does not accept the new keys: copy .*elsewhere\.conf to every server"):
        await rotation.rotate(elsewhere, ["nkeys"])

    assert await installed.is_accepted(installed.written("router", "WAYLINE_NATS_SEED"))
    assert (await installed.rotate("nkeys")).outcome is RotationOutcome.RESTART


MOMENTS_APART = 3


class Killed(BaseException):
    """The end of a command in the middle."""


def killed_at(monkeypatch: pytest.MonkeyPatch, moment: int) -> Callable[[], bool]:
    """End the command at one of its steps, before what it does or behind it; return whether it came to that."""
    passed = 0

    def step() -> None:
        nonlocal passed
        passed += 1
        if passed == moment:
            raise Killed

    def wrapped(method: Callable[..., object]) -> Callable[..., object]:
        def sync(self: RotatedInstallation, *args: object, **named: object) -> object:
            step()
            done = method(self, *args, **named)
            step()
            return done

        async def later(self: RotatedInstallation, *args: object, **named: object) -> object:
            step()
            made = method(self, *args, **named)
            assert isinstance(made, Awaitable)
            await made
            step()
            return None

        return later if asyncio.iscoroutinefunction(method) else sync

    for name in ("save", "write_environments", "tell_bus"):
        monkeypatch.setattr(RotatedInstallation, name, wrapped(getattr(RotatedInstallation, name)))
    return lambda: passed >= moment


@pytest.mark.parametrize(
    "what",
    ["passwords", pytest.param("nkeys", marks=pytest.mark.slow), pytest.param("secret-keys", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("first", seeds(MOMENTS_APART))
async def test_a_rotation_killed_anywhere_goes_on_and_locks_nobody_out(installed: Installed, what: str, first: int):
    before = installed.credentials
    for moment in range(1 + first, 40, MOMENTS_APART):
        with pytest.MonkeyPatch.context() as patch:
            was_killed = killed_at(patch, moment)
            try:
                for _ in range(3):
                    if (await installed.rotate(what)).outcome is RotationOutcome.FINISHED:
                        break
            except Killed:
                pass
        assert await installed.is_accepted(installed.written("router", "WAYLINE_NATS_SEED")), moment
        assert await may_log_in(installed.written("router", "WAYLINE_POSTGRES_DSN")), moment
        assert await may_log_in(installed.written("grafana", "WAYLINE_POSTGRES_DSN")), moment
        while (await installed.rotate(what)).outcome is not RotationOutcome.FINISHED:
            pass
        assert not installed.credentials.rotations
        if not was_killed():
            break
    else:
        pytest.fail("it has more steps than were tried")
    assert installed.credentials != before
