"""Suspended programs in the object store, signed with this installation's keys."""

from __future__ import annotations

import binascii
import secrets
from base64 import b64decode

from pydantic import SecretStr

from wayline.chassis import Bus, Failpoint, reach
from wayline.chassis.claim_check.claims import PayloadChanged
from wayline.contracts.errors import WrongSetting
from wayline.sandbox import (
    Program,
    SnapshotKeys,
    SnapshotOwner,
    Suspended,
    WrongSignature,
    read_snapshot,
    write_snapshot,
)

VARIABLE = "WAYLINE_EXECUTOR_SNAPSHOT_KEYS"
KEY_BYTES = 32


class Snapshots:
    """Writes and reads snapshots of programs; one that cannot be read is no loss, the program can run again."""

    def __init__(self, bus: Bus, keys: SnapshotKeys) -> None:
        self._bus = bus
        self._keys = keys

    async def put(self, suspended: Suspended, program: Program, owner: SnapshotOwner) -> str:
        """Store a suspended program and return the object's name. Raises Full, Unavailable."""
        reach(Failpoint.EXECUTOR_SNAPSHOT_BEFORE)
        snapshot = write_snapshot(suspended, program, owner, self._keys)
        name = await self._bus.claims.put(f"{owner.tenant}/{owner.job_id}", snapshot)
        reach(Failpoint.EXECUTOR_SNAPSHOT_AFTER)
        return name

    async def get(self, name: str, program: Program, owner: SnapshotOwner) -> Suspended:
        """Return a suspended program. Raises Unavailable, SnapshotRefused and what else is wrong with its name."""
        try:
            snapshot = await self._bus.claims.get(name, within=f"{owner.tenant}/{owner.job_id}/")
        except PayloadChanged as error:
            raise WrongSignature(str(error)) from None
        return read_snapshot(snapshot, program, owner, self._keys)


def snapshot_keys(setting: SecretStr | None) -> SnapshotKeys:
    """Return the keys of a setting, `id:base64` and so on, the newest first; without any, one that ends with us."""
    if setting is None:
        return SnapshotKeys([("process", secrets.token_bytes(KEY_BYTES))])
    try:
        pairs = (pair.strip().partition(":") for pair in setting.get_secret_value().split(","))
        return SnapshotKeys([(name, b64decode(key, validate=True)) for name, _, key in pairs])
    except (ValueError, binascii.Error) as error:
        raise WrongSetting(VARIABLE, f"{error}; write `id:base64` for each key, the newest first") from None
