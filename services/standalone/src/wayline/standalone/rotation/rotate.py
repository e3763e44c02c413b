"""`wayline rotate`: do what is due of a rotation, and show all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from wayline.standalone.bus.stored_clients import locked
from wayline.standalone.rotation import nkeys, passwords
from wayline.standalone.rotation.nkeys import rotate_nkeys
from wayline.standalone.rotation.passwords import PASSWORDS, rotate_passwords
from wayline.standalone.rotation.rotated_installation import RotatedInstallation, named
from wayline.standalone.rotation.rotation_step import RotationStep
from wayline.standalone.rotation.service_keys import (
    SECRET_KEYS,
    SNAPSHOT_KEYS,
    processes_behind,
    rotate_keys,
    rows_of_older,
)
from wayline.standalone.settings import Settings
from wayline.standalone.setup.credentials import NKEYS, Phase
from wayline.standalone.setup.installation import Installation

KEY_KINDS = {kind.what: kind for kind in (SECRET_KEYS, SNAPSHOT_KEYS)}
EVERYTHING = (NKEYS, PASSWORDS, *KEY_KINDS)


async def rotate(
    settings: Settings, wanted: Sequence[str], *, restarted: bool = False, say: Callable[[str], None] = print
) -> list[RotationStep]:
    """Do what is due of each rotation. Raises CannotRotate, NoServers, Unavailable."""
    installation = Installation(settings.data_dir.absolute())
    installation.prepare()
    rotated = RotatedInstallation(settings, installation, restarted)
    doing = {
        NKEYS: rotate_nkeys,
        PASSWORDS: rotate_passwords,
        **{what: partial(rotate_keys, kind=kind, say=say) for what, kind in KEY_KINDS.items()},
    }
    # One command at a time, and none that changes clients of the bus: they write the same files.
    with locked(installation.clients):
        return [await doing[what](rotated) for what in wanted]


async def status(settings: Settings) -> list[dict[str, str]]:
    """Return of each rotation its phase, and who or what holds it up."""
    rotated = RotatedInstallation(settings, Installation(settings.data_dir.absolute()))
    found: list[dict[str, str]] = []
    for what in EVERYTHING:
        phase = rotated.phase(what)
        held = await _held(rotated, what) if phase is not None else ""
        found.append({"what": what, "phase": phase or "none", "held_by": held})
    return found


async def _held(rotated: RotatedInstallation, what: str) -> str:
    """Return who keeps a rotation from its next step; nothing: a command does it."""
    if what == NKEYS:
        return named(await nkeys.users_of_former(rotated)) if rotated.phase(what) is Phase.TAKEN else ""
    if what == PASSWORDS:
        async with rotated.database() as conn:
            return named(await passwords.users_of_former(rotated, conn)) if rotated.phase(what) is Phase.TAKEN else ""
    kind = KEY_KINDS[what]
    held = named(await processes_behind(rotated, kind))
    if not held and kind.stored and rotated.phase(what) is Phase.TAKEN:
        held = ", ".join(f"{rows} rows of {name}" for name, rows in (await rows_of_older(rotated, kind)).items())
    return held
