"""Make the first API key of tenant `default`, once: beyond loopback the gateway serves nobody without one."""

from __future__ import annotations

import argparse
import asyncio
import os
from importlib.resources import files
from pathlib import Path

from wayline.gateway.adapters.keys import Keys, create_key
from wayline.standalone.setup.credentials import write_private
from wayline.standalone.setup.installation import Installation, read_environment
from wayline.store import Store

TENANT = "default"
FILE = "first-key"


async def main(root: Path, *, shown: bool = False) -> None:
    """Leave the key in `<root>/first-key`, readable by its owner, or print it where it is to be shown."""
    dsn = read_environment(Installation(root), "gateway")["WAYLINE_POSTGRES_DSN"]
    store = await Store.connect(dsn, schema="gateway", queries=files("wayline.gateway") / "queries.sql", wait_s=30)
    try:
        if await Keys(store).any():
            return
        secret = await create_key(store, TENANT, "first key")
        if shown:
            print(secret)
        else:
            write_private(root / FILE, secret + "\n")
    finally:
        await store.close()


if __name__ == "__main__":
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("root", type=Path, nargs="?", default=os.environ.get("WAYLINE_DATA_DIR"))
    command.add_argument("--show", action="store_true", help="print the key instead of leaving it in a file")
    asked = command.parse_args()
    asyncio.run(main(asked.root, shown=asked.show))
