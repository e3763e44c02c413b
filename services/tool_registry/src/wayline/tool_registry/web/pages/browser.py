"""Read a page as a browser shows it: with what its scripts put there.

The browser is a program of the installation's, started for one page in a jail with a profile of its own, and ended with
it. All that it asks for goes through a guarded proxy.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from wayline.chassis.concurrency.tenant_turns import TenantTurns
from wayline.guarded_http import AddressPolicy
from wayline.guarded_http.outbound import Outbound
from wayline.guarded_http.proxy import GuardedProxy
from wayline.tool_registry.programs.jails import HOME, JailLimits, Jails, Network, guarded
from wayline.tool_registry.programs.pipes import close_pipes
from wayline.tool_registry.programs.program_network import PORT

SCRIPTS_MS: Final = 5_000
"""How long scripts may run by their own clock, which skips what they wait for."""
BROWSERS_MAX: Final = 2
"""At once, of different tenants: each takes some hundred megabytes."""
BROWSER_SETTINGS: Final = ("/etc/chromium", "/etc/chromium.d")
TRAFFIC_FACTOR: Final = 3
"""Of the bytes of a page, for what it loads beside itself."""
FLAGS: Final = (
    "--headless=new",
    "--dump-dom",
    f"--virtual-time-budget={SCRIPTS_MS}",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-sync",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-default-apps",
    "--no-first-run",
    "--mute-audio",
    "--blink-settings=imagesEnabled=false",
    # What does not speak to a proxy must not go past it.
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--proxy-bypass-list=<-loopback>",
)


class CannotRender(Exception):
    """The browser brought no page; the sentence says why."""


class Browser:
    """Starts a browser for one page after the other."""

    def __init__(
        self,
        command: Sequence[str],
        policy: AddressPolicy,
        *,
        page_max_bytes: int,
        timeout_s: float,
        jails: Jails | None = None,
        limits: JailLimits | None = None,
        proxy: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        """Take what starts the browser; without `jails` it runs with our own rights."""
        self._jails = jails
        self._proxy, self._ca_file = proxy, ca_file
        self._limits = limits or JailLimits()
        self._command = tuple(command)
        self._policy = policy
        self._page_max_bytes = page_max_bytes
        self._timeout_s = timeout_s
        self._slots = TenantTurns(BROWSERS_MAX)

    async def render(self, tenant: str, url: str) -> bytes:
        """Return the document of a page, as HTML in UTF-8, after its scripts ran. Raises CannotRender."""
        try:
            async with asyncio.timeout(self._timeout_s), self._slots.turn(tenant):
                return await (
                    self._unconfined(tenant, url) if self._jails is None else self._jailed(tenant, url, self._jails)
                )
        except TimeoutError:
            raise CannotRender(f"the browser did not show it within {self._timeout_s:g} s") from None

    async def _jailed(self, tenant: str, url: str, jails: Jails) -> bytes:
        """Run the browser as a tenant's program is: what a page makes of it has nothing but the page."""
        program = shutil.which(self._command[0])
        if program is None:
            raise CannotRender(f"the browser {self._command[0]} does not start: there is no such program")
        if (why := await jails.why_not()) is not None:
            raise CannotRender(f"the browser does not start, because it cannot be isolated here: {why}")
        most = TRAFFIC_FACTOR * self._page_max_bytes
        network = Network(self._policy, bytes_max=most, proxy=self._proxy, ca_file=self._ca_file)
        # Where it is installed, and what Debian's own starts it with.
        named = (_installed_in(program), *BROWSER_SETTINGS)
        async with jails.jail(f"browser of {tenant}", program, self._limits, named=named, network=network) as jail:
            command = (*guarded(jail.prefix), program, *self._command[1:])
            return await self._dumped(command, url, port=PORT, profile=f"{HOME}/profile", env=jail.env, cwd="/")

    async def _unconfined(self, tenant: str, url: str) -> bytes:
        outbound = Outbound(self._proxy, self._ca_file)
        proxy = GuardedProxy(
            self._policy, bytes_max=TRAFFIC_FACTOR * self._page_max_bytes, outbound=outbound, owner=tenant
        )
        async with proxy.serving() as port:
            with tempfile.TemporaryDirectory(prefix="wayline-browser-", ignore_cleanup_errors=True) as profile:
                # Without our environment: what a page makes of the browser sees no secret.
                env = {"HOME": profile, "TMPDIR": profile, "LANG": "C.UTF-8", "PATH": os.defpath}
                return await self._dumped(self._command, url, port=port, profile=profile, env=env, cwd=profile)

    async def _dumped(
        self, command: Sequence[str], url: str, *, port: int, profile: str, env: Mapping[str, str], cwd: str
    ) -> bytes:
        more = (f"--user-data-dir={profile}", f"--proxy-server=http://127.0.0.1:{port}")
        try:
            process = await asyncio.create_subprocess_exec(
                *(*command, *FLAGS, *more, "--", url),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=cwd,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            raise CannotRender(f"the browser {self._command[0]} does not start: {error.strerror}") from None
        try:
            return await self._output(process)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            close_pipes(process)

    async def _output(self, process: asyncio.subprocess.Process) -> bytes:
        assert process.stdout is not None
        document = bytearray()
        while piece := await process.stdout.read(64 * 1024):
            document += piece
            if len(document) > self._page_max_bytes:
                raise CannotRender(f"what its scripts made is above {self._page_max_bytes} bytes")
        if await process.wait() or not document:
            raise CannotRender(
                f"the browser {self._command[0]} ended without a page: does it run by hand, as this user?"
            )
        return bytes(document)


def _installed_in(program: str) -> str:
    return os.path.dirname(os.path.realpath(program))
