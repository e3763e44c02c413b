"""`wayline migrate`: of servers that run, ours or somebody else's."""

from __future__ import annotations

import json

from wayline.chassis import BusSettings
from wayline.standalone.setup.credentials import ADMIN
from wayline.standalone.errors import NoServers
from wayline.standalone.setup.installation import Installation, Place, read_environment, write_environments
from wayline.standalone.setup.migrations import migrate_all
from wayline.standalone.settings import Settings


async def migrate(settings: Settings, *, as_json: bool = False) -> None:
    """Change what has to change, and print it."""
    installation = Installation(settings.data_dir.absolute())
    installation.prepare()
    place = find_place(settings, installation)
    changes: list[str] = []
    async for change in migrate_all(place, settings.limits):
        changes.append(change)
        if not as_json:
            print(change, flush=True)
    write_environments(installation, place)
    if as_json:
        print(json.dumps({"changes": changes}))
    elif not changes:
        print("nothing to change")


def find_place(settings: Settings, installation: Installation) -> Place:
    """Where the servers are: what the environment says, else what `wayline up` left. Raises NoServers."""
    kept = read_environment(installation, ADMIN)
    admin_dsn = settings.admin_dsn or kept.get("WAYLINE_POSTGRES_DSN")
    nats_url = settings.nats_url or kept.get("WAYLINE_NATS_URL")
    if admin_dsn is None:
        raise NoServers(data_dir=installation.root)
    credentials = installation.load_credentials()
    same_bus = nats_url is not None and nats_url == kept.get("WAYLINE_NATS_URL")
    seed = settings.nats_seed or (kept.get("WAYLINE_NATS_SEED") if same_bus else None)
    return Place(
        nats_url=nats_url or BusSettings.model_fields["nats_url"].default,
        admin_dsn=admin_dsn,
        credentials=credentials,
        # A bus whose administrator is ours, or that includes our accounts, was told of every identity of ours.
        own_bus=seed == credentials.seeds[ADMIN]
        or (settings.nats_accounts_file is not None and settings.nats_seed is None),
        nats_seed=seed,
    )
