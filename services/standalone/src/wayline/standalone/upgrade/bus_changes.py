"""Which streams and consumers this version would change, and which rights on the bus it lacks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from wayline.chassis.declare import consumer_drift, stores
from wayline.chassis.stream_limits import Limits
from wayline.chassis.topology import CONSUMERS
from wayline.standalone.bus.accounts_file import accounts_file, accounts_text
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation, ServerAccess
from wayline.standalone.upgrade.upgrade_step import UpgradeStep, UpgradeSteps

MIGRATE: Final = "`wayline migrate`, while the services work"
WRITE: Final = "`wayline credentials write`, then restart the bus"
SHOWN: Final = 5
"""How many missing rights of one account are named."""


async def check_streams(js: JetStreamContext, limits: Limits) -> UpgradeSteps:
    """Yield what is missing, and what differs from what this version declares."""
    for store in await stores(js, limits):
        if store.present is None:
            yield UpgradeStep("streams", f"{store} is made", MIGRATE)
        elif drift := store.drift(allow_shrink=False):
            yield UpgradeStep("streams", f"{store}: {', '.join(sorted(drift))} change", MIGRATE)
    for consumer in CONSUMERS:
        what = f"consumer {consumer.stream}/{consumer.name}"
        try:
            present = (await js.consumer_info(consumer.stream, consumer.name)).config
        except NotFoundError:
            yield UpgradeStep("streams", f"{what} is made", MIGRATE)
            continue
        if drift := consumer_drift(consumer, present, limits):
            yield UpgradeStep("streams", f"{what}: {', '.join(sorted(drift))} change", MIGRATE)


def check_rights(settings: Settings, installation: Installation, access: ServerAccess) -> Iterator[UpgradeStep]:
    """Yield the rights that the accounts of the bus lack; where they are not this installation's nobody can tell."""
    path = accounts_file(settings, installation)
    if not access.own_bus or not path.exists():
        text = "the rights of this version were not compared: the bus does not take its accounts from here"
        yield UpgradeStep("unknown", text, f"compare your accounts with those of {WRITE.split(',', maxsplit=1)[0]}")
        return
    wanted = accounts_text(settings, installation, access.credentials)
    for name, missing in missing_rights(wanted, path.read_text()).items():
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        yield UpgradeStep("rights", f"account {name} lacks {', '.join(missing[:SHOWN])}{more}", WRITE)


def missing_rights(wanted: str, present: str) -> dict[str, list[str]]:
    """Return what the accounts of one configuration may do, and those of another may not, by account."""
    there, found = _accounts(present), dict[str, list[str]]()
    for name, account in _accounts(wanted).items():
        if missing := sorted(set(_rights(account)) - set(_rights(there.get(name, {})))):
            found[name] = missing
    return found


def _accounts(text: str) -> dict[str, Any]:
    found, _ = json.JSONDecoder().raw_decode(text.partition("accounts ")[2].lstrip())
    return found


def _rights(account: dict[str, Any]) -> Iterator[str]:
    """Yield what an account's users may do, and what goes into it and out of it, in words."""
    for user in account.get("users", ()):
        for verb in ("publish", "subscribe"):
            allowed = user.get("permissions", {}).get(verb, {}).get("allow", ())
            yield from (f"{verb} {subject}" for subject in ([allowed] if isinstance(allowed, str) else allowed))
    for direction in ("imports", "exports"):
        for one in account.get(direction, ()):
            yield f"{direction[:-1]} {json.dumps(one, sort_keys=True)}"
