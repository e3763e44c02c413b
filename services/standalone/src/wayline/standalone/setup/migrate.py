"""`wayline migrate`: migrate running servers, embedded ones or the user's own."""

from __future__ import annotations

import json

from wayline.chassis import BusSettings
from wayline.standalone.errors import NoServers
from wayline.standalone.settings import Settings
from wayline.standalone.setup.credentials import ADMIN
from wayline.standalone.setup.installation import Installation, ServerAccess, read_environment, write_environments
from wayline.standalone.setup.migrations import migrate_all


async def migrate(settings: Settings, *, allow_shrink: bool = False, as_json: bool = False) -> None:
    """Migrate the database and the bus, and print each change. Raises WouldShrink."""
    installation = Installation(settings.data_dir.absolute())
    installation.prepare()
    access = find_servers(settings, installation)
    changes: list[str] = []
    async for change in migrate_all(access, settings.limits, allow_shrink=allow_shrink):
        changes.append(change)
        if not as_json:
            print(change, flush=True)
    write_environments(installation, access)
    if as_json:
        print(json.dumps({"changes": changes}))
    elif not changes:
        print("nothing to change")


def find_servers(settings: Settings, installation: Installation) -> ServerAccess:
    """Return the servers' addresses: from the environment, else as `wayline up` wrote them. Raises NoServers."""
    written = read_environment(installation, ADMIN)
    admin_dsn = settings.admin_dsn or written.get("WAYLINE_POSTGRES_DSN")
    nats_url = settings.nats_url or written.get("WAYLINE_NATS_URL")
    if admin_dsn is None:
        raise NoServers(data_dir=installation.root)
    credentials = installation.load_credentials()
    same_bus = nats_url is not None and nats_url == written.get("WAYLINE_NATS_URL")
    seed = settings.nats_seed or (written.get("WAYLINE_NATS_SEED") if same_bus else None)
    return ServerAccess(
        nats_url=nats_url or BusSettings.model_fields["nats_url"].default,
        admin_dsn=admin_dsn,
        credentials=credentials,
        # A bus with our administrator, or one that includes our accounts, knows every identity of ours.
        own_bus=(seed is not None and seed in (credentials.seeds[ADMIN], credentials.other_seeds.get(ADMIN)))
        or (settings.nats_accounts_file is not None and settings.nats_seed is None),
        nats_seed=seed,
        pooler_dsn=settings.pooler_dsn,
    )
