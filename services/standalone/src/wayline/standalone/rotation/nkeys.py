"""Replace the nkeys of the services, of the administrator and of the one that reloads servers."""

from __future__ import annotations

from collections import Counter

import nats
from nats import errors as nats_errors

from wayline.standalone.bus.accounts_file import ONCE_MORE
from wayline.standalone.errors import CannotRotate
from wayline.standalone.rotation.rotated_installation import RotatedInstallation, named
from wayline.standalone.rotation.rotation_step import RotationOutcome, RotationStep
from wayline.standalone.setup.credentials import ADMIN, NKEYS, Phase, new_seed, public_key

RELOAD = "copy {file} to every server, `nats-server --signal reload` each of them twice, then run this again"
CONNECT_WITHIN_S = 2


async def rotate_nkeys(rotated: RotatedInstallation) -> RotationStep:
    """Do what is due. Raises CannotRotate, Unavailable."""
    if not rotated.access.own_bus:
        raise CannotRotate("this bus has no accounts of Wayline's: its keys are changed where it is configured")
    if rotated.phase(NKEYS) is None:
        seeds = {name: new_seed() for name in rotated.credentials.seeds}
        rotated.save(NKEYS, Phase.OFFERED, other_seeds=seeds)
    if rotated.phase(NKEYS) is Phase.OFFERED:
        await rotated.tell_bus()
        await _require(rotated, accepted=True)
        stored = rotated.credentials
        rotated.save(NKEYS, Phase.TAKEN, seeds=stored.other_seeds, other_seeds=stored.seeds)
        rotated.write_environments()
        return _restart("the bus accepts new keys beside the old ones")
    if rotated.phase(NKEYS) is Phase.TAKEN:
        # What an earlier command that was ended has left undone.
        await rotated.tell_bus()
        rotated.write_environments()
        if not rotated.restarted and (users := await users_of_former(rotated)):
            return RotationStep(
                NKEYS, RotationOutcome.WAITING, f"still connected with an old key: {named(users)}", RESTART
            )
        rotated.save(NKEYS, Phase.CLOSING)
    await rotated.tell_bus()
    await _require(rotated, accepted=False)
    rotated.save(NKEYS, None, other_seeds={})
    return RotationStep(NKEYS, RotationOutcome.FINISHED, "the bus refuses the old keys")


async def users_of_former(rotated: RotatedInstallation) -> Counter[str]:
    """Return the services that are connected with a former key, each with how many processes."""
    former = {public_key(seed) for seed in rotated.credentials.other_seeds.values()}
    return Counter(one.service for one in await rotated.connections() or () if one.public_key in former)


RESTART = "restart every service, one after the other, or `wayline up`; then `wayline rotate nkeys` again"


def _restart(told: str) -> RotationStep:
    return RotationStep(NKEYS, RotationOutcome.RESTART, told, RESTART)


async def _require(rotated: RotatedInstallation, *, accepted: bool) -> None:
    """Check that every server accepts, or refuses, the other keys: one may not see the file. Raises CannotRotate."""
    file = rotated.settings.nats_accounts_file or rotated.installation.nats / "accounts.conf"
    for url in rotated.access.nats_url.split(","):
        if await _accepts(url, rotated.credentials.other_seeds[ADMIN]) is not accepted:
            trouble = "does not accept the new keys" if accepted else "still accepts the old keys"
            where = url.rpartition("@")[2]
            raise CannotRotate(f"the server {where} {trouble}: {RELOAD.format(file=file)}")


async def _accepts(url: str, seed: str) -> bool:
    """Return whether a server takes a connection. Raises CannotRotate where it does not answer."""

    async def ignore(_: Exception) -> None:
        return None

    try:
        nc = await nats.connect(
            url,
            nkeys_seed_str=seed,
            allow_reconnect=False,
            error_cb=ignore,
            connect_timeout=CONNECT_WITHIN_S,
            **ONCE_MORE,
        )
    except nats_errors.Error as error:
        if "authorization violation" in str(error).lower():
            return False
        raise CannotRotate(f"the server {url.rpartition('@')[2]} does not answer: {error}") from None
    except (OSError, TimeoutError) as error:
        raise CannotRotate(f"the server {url.rpartition('@')[2]} does not answer: {error}") from None
    await nc.close()
    return True
