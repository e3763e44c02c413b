"""Make the first API key of tenant `default`, once: beyond loopback the gateway serves nobody without one."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib.resources import files
from pathlib import Path

from wayline.gateway.adapters.keys import Keys, create_key
from wayline.standalone.setup.credentials import write_private
from wayline.standalone.setup.installation import Installation, read_environment
from wayline.store import Store

TENANT = "default"
FILE = "first-key"


async def main(root: Path) -> None:
    """Leave the key in `<root>/first-key`, readable by its owner; nothing is logged."""
    dsn = read_environment(Installation(root), "gateway")["WAYLINE_POSTGRES_DSN"]
    store = await Store.connect(dsn, schema="gateway", queries=files("wayline.gateway") / "queries.sql", wait_s=30)
    try:
        if await Keys(store).any():
            return
        secret = await create_key(store, TENANT, "first key")
        write_private(root / FILE, secret + "\n")
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1] if sys.argv[1:] else os.environ["WAYLINE_DATA_DIR"])))
