"""The console of `wayline up`: a process of its own, which knows the gateway's address and nothing else of us."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import structlog

from wayline.embedded.process import Child, spawn
from wayline.standalone.setup.credentials import write_private
from wayline.standalone.setup.installation import Installation

log = structlog.get_logger()

COOKIE_KEY = "console-cookie-key"
COOKIE_KEY_BYTES = 32
END_WITHIN_S = 6.0
LOOK_EVERY_S = 1.0
"""Between two looks at whether it runs; one that ends at once is started no more often."""
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "VIRTUAL_ENV", "PYTHONPATH")
"""What it is given of our environment: the rest may hold providers' keys."""


class Console:
    """Keeps a console running; one that ends by itself is started again."""

    def __init__(self, installation: Installation, *, host: str, port: int, gateway_url: str) -> None:
        self.url = f"http://{host}:{port}"
        self._log = installation.logs / "console.log"
        self._root = installation.root
        own = {name: value for name, value in os.environ.items() if name.startswith("WAYLINE_CONSOLE_")}
        self._environment = {
            **{name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ},
            "WAYLINE_CONSOLE_COOKIE_KEY": _cookie_key(installation.credentials / COOKIE_KEY),
            **own,
            "WAYLINE_CONSOLE_HOST": host,
            "WAYLINE_CONSOLE_PORT": str(port),
            "WAYLINE_CONSOLE_GATEWAY_URL": gateway_url,
        }

    async def start(self, stack: AsyncExitStack) -> None:
        """Start it, and keep it running until the stack unwinds."""
        keeping = asyncio.create_task(self._keep(self._spawn()))

        async def stop() -> None:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping

        stack.push_async_callback(stop)

    def _spawn(self) -> Child:
        return spawn(
            [sys.executable, "-m", "wayline.console"],
            cwd=self._root,
            log=self._log,
            death_signal=signal.SIGTERM,
            env=self._environment,
        )

    async def _keep(self, child: Child) -> None:
        try:
            while True:
                await asyncio.sleep(LOOK_EVERY_S)
                if child.exited:
                    log.warning("the console ended and is started again", log=str(self._log))
                    child = self._spawn()
        finally:
            if not await child.end(signal.SIGTERM, within_s=END_WITHIN_S):
                await child.kill()


def _cookie_key(path: Path) -> str:
    """Return the key that seals browsers' cookies: the same after a restart, so that nobody signs in again."""
    if not path.exists():
        write_private(path, secrets.token_hex(COOKIE_KEY_BYTES))
    return path.read_text().strip()
