"""Replace the keys with which services encrypt what they store, and sign suspended programs.

A new key is first known to every process, then used by every process; then what the old one encrypted is encrypted
anew, and only then the old one goes.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wayline.contracts.errors import Refused, Retry, Unavailable
from wayline.contracts.tenant_secrets import RotateSecrets, SecretRotation
from wayline.gateway.keys import OPEN_TENANT
from wayline.standalone.rotation.rotated_installation import RotatedInstallation, named
from wayline.standalone.rotation.rotation_step import RotationOutcome, RotationStep
from wayline.standalone.setup.credentials import Phase, new_service_key
from wayline.standalone.setup.migrations import connected_admin, sql

BATCH_WITHIN_S = 30.0
"""How long a registry may take to encrypt a batch anew."""
LOOK_S = 1.0


@dataclass(frozen=True)
class KeyKind:
    """Keys that are rotated together."""

    what: str
    services: tuple[str, ...]
    stored: bool
    """Whether rows are encrypted with them."""

    @property
    def restart(self) -> str:
        """Return what is to be restarted before the next step."""
        names = " and ".join(name.replace("_", "-") for name in self.services)
        return f"restart every {names}, or `wayline up`; then `wayline rotate {self.what}` again"


SECRET_KEYS = KeyKind("secret-keys", ("tool_registry", "notifier"), stored=True)
# A suspended program whose snapshot cannot be read runs again, with the answers that its job has recorded.
SNAPSHOT_KEYS = KeyKind("snapshot-keys", ("executor",), stored=False)


async def rotate_keys(rotated: RotatedInstallation, kind: KeyKind, *, say: Callable[[str], None]) -> RotationStep:
    """Do what is due. Raises CannotRotate, Unavailable."""
    phase = rotated.phase(kind.what)
    if phase is None:
        keys = {name: f"{rotated.credentials.service_keys[name]},{new_service_key()}" for name in kind.services}
        _save(rotated, kind, Phase.OFFERED, keys)
        return RotationStep(
            kind.what, RotationOutcome.RESTART, "there is a new key, which processes can read", kind.restart
        )
    # What an earlier command that was ended has left undone.
    rotated.write_environments()
    if not rotated.restarted and not rotated.access.own_bus:
        told = "this bus does not say which processes know the new key"
        return RotationStep(kind.what, RotationOutcome.WAITING, told, f"{kind.restart} with `--restarted`")
    if not rotated.restarted and (behind := await processes_behind(rotated, kind)):
        verb = "do not know the new key" if phase is Phase.OFFERED else "use the old key"
        return RotationStep(kind.what, RotationOutcome.WAITING, f"these still {verb}: {named(behind)}", kind.restart)
    if phase is Phase.OFFERED:
        _save(rotated, kind, Phase.TAKEN, {name: _newest_first(rotated, name) for name in kind.services})
        told = "the new key is to be used, and the old one to be read"
        return RotationStep(kind.what, RotationOutcome.RESTART, told, kind.restart)
    if kind.stored and (left := await _encrypt_anew(rotated, kind, say)):
        told = ", ".join(f"{rows} rows of {name}" for name, rows in left.items())
        again = (
            "the old key stays: logins under way end within ten minutes, and `wayline mcp secrets rotate` says what "
            "cannot be read and has to be saved anew; then `wayline rotate secret-keys` again"
        )
        return RotationStep(kind.what, RotationOutcome.WAITING, f"still encrypted with an old key: {told}", again)
    _save(rotated, kind, None, {name: _keys_of(rotated, name)[0] for name in kind.services})
    return RotationStep(
        kind.what, RotationOutcome.FINISHED, "nothing needs the old key; processes forget it when they restart"
    )


async def processes_behind(rotated: RotatedInstallation, kind: KeyKind) -> Counter[str]:
    """Return the services with processes that do not know the newest key, or do not use it where they should."""
    using, behind = rotated.phase(kind.what) is Phase.TAKEN, Counter[str]()
    for one in await rotated.connections() or ():
        if one.service in kind.services:
            ids = _ids(rotated, one.service)
            newest = ids[0] if using else ids[-1]
            behind[one.service] += newest not in (one.key_ids[:1] if using else one.key_ids)
    return +behind


def _save(rotated: RotatedInstallation, kind: KeyKind, phase: Phase | None, keys: Mapping[str, str]) -> None:
    rotated.save(kind.what, phase, service_keys={**rotated.credentials.service_keys, **keys})
    rotated.write_environments()


def _keys_of(rotated: RotatedInstallation, service: str) -> list[str]:
    return rotated.credentials.service_keys[service].split(",")


def _ids(rotated: RotatedInstallation, service: str) -> list[str]:
    return [key.partition(":")[0] for key in _keys_of(rotated, service)]


def _newest_first(rotated: RotatedInstallation, service: str) -> str:
    *older, newest = _keys_of(rotated, service)
    return ",".join([newest, *older])


async def _encrypt_anew(rotated: RotatedInstallation, kind: KeyKind, say: Callable[[str], None]) -> dict[str, int]:
    """Have services encrypt anew what an old key encrypted; return what is left once it does not become less."""
    deadline, least = time.monotonic() + rotated.rows_wait_s, None
    while left := await rows_of_older(rotated, kind):
        rows = sum(left.values())
        if least is None or rows < least:
            deadline, least = time.monotonic() + rotated.rows_wait_s, rows
            say(f"{rows} rows are to be encrypted with the new key")
        if time.monotonic() > deadline:
            return left
        if not await _ask_registry(rotated):
            await asyncio.sleep(LOOK_S)
    return {}


async def _ask_registry(rotated: RotatedInstallation) -> int:
    """Have a registry encrypt a batch, and return how many rows it did."""
    try:
        async with connected_admin(rotated.access) as bus:
            ask = RotateSecrets(tenant=OPEN_TENANT)
            return (await bus.ask(ask, SecretRotation, timeout_s=BATCH_WITHIN_S)).encrypted
    except (Unavailable, Refused, Retry):
        # It does the same by itself, and when it starts.
        return 0


async def rows_of_older(rotated: RotatedInstallation, kind: KeyKind) -> dict[str, int]:
    """Return how many rows of each table an older key has encrypted."""
    older = [key for name in kind.services for key in _ids(rotated, name)[1:]]
    async with rotated.database() as conn, conn.transaction():
        await conn.execute(sql.act_for_all)
        return {row["name"]: row["rows"] for row in await conn.fetch(sql.rows_of_older_keys, older)}
