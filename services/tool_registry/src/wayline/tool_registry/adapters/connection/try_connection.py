"""Connect to a server once, and report what it is and what it offers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, TextIO, cast

from wayline.contracts.mcp_servers import OfferedCounts, OfferedTool, ServerReport
from wayline.contracts.server_config import CONFIG_MAX_BYTES, ServerSettings
from wayline.tool_registry.adapters.connection.failures import reason
from wayline.tool_registry.adapters.connection.mcp_library import load
from wayline.tool_registry.adapters.connection.offered_tools import OfferedTool as OfferedByServer
from wayline.tool_registry.adapters.connection.offered_tools import every_page, offered_tools, redacted_tools
from wayline.tool_registry.adapters.connection.sessions import entered
from wayline.tool_registry.adapters.connection.transport import Confinement, MakeAuth, Transport
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.tools.catalogue import effect_of
from wayline.tool_registry.tools.definitions import Definition
from wayline.tool_registry.tools.visible_text import visible

if TYPE_CHECKING:
    from mcp import Client

CONNECTIONS = 4
ERRORS_CHARS = 2_000
"""Of the end of a program's error stream."""
ERRORS_READ_BYTES = 2 * CONFIG_MAX_BYTES
"""More than a secret may have: one that is cut in two would not be found."""
TEXT_CHARS = 1_000
"""Of a description or of instructions."""
WHY_CHARS = 500
LISTED_MAX = 1_000
"""Of tools, of resources and of prompts, each."""


async def try_connection(
    server: ServerSettings, settings: Settings, *, authorize: MakeAuth | None = None
) -> ServerReport:
    """Return what a server offers, or why it cannot be connected to; secrets are in neither."""
    report, _ = await offered_definitions(server, settings, authorize=authorize)
    return report


async def offered_definitions(
    server: ServerSettings, settings: Settings, *, authorize: MakeAuth | None = None
) -> tuple[ServerReport, tuple[Definition, ...]]:
    """Return the same report, and the definitions of the server's tools."""
    await load()
    offered: list[OfferedByServer] = []
    started = time.perf_counter()
    with _error_stream() as errors:
        confined = Confinement.by(settings)
        transport = Transport(
            server, connections_max=CONNECTIONS, confined=confined, errors_to=errors, authorize=authorize
        )
        try:
            report = await _report(transport, server, offered, within_s=settings.try_timeout_s)
            taken = redacted_tools(offered, transport.without_secrets)
        except Exception as error:
            # A server is foreign code: every failure of it is reported.
            late = isinstance(error, TimeoutError)
            why = f"no answer within {settings.try_timeout_s:g} s" if late else transport.hide(reason(error))
            written = visible(transport.hide(_end_of(errors))[-ERRORS_CHARS:])
            report, taken = ServerReport(ok=False, why=visible(why[:WHY_CHARS]), errors=written), []
    report = report.model_copy(update={"took_ms": (time.perf_counter() - started) * 1000})
    return report, tuple(one.definition for one in taken)


async def _report(
    transport: Transport, server: ServerSettings, offered: list[OfferedByServer], *, within_s: float
) -> ServerReport:
    """Return the report, and put the server's tools into `offered`."""
    from mcp import Client

    until = asyncio.get_running_loop().time() + within_s
    async with transport.opened():
        client = Client(transport.target(), cache=None)
        async with entered(client, within_s=within_s), asyncio.timeout_at(until):
            if client.server_capabilities.tools:
                offered += await offered_tools(client)
            return await _offer(client, server, offered, lambda text: visible(transport.hide(text)))


async def _offer(
    client: Client, server: ServerSettings, tools: list[OfferedByServer], shown: Callable[[str], str]
) -> ServerReport:
    can, about = client.server_capabilities, client.server_info
    resources = await every_page(client.list_resources, "resources") if can.resources else []
    prompts = await every_page(client.list_prompts, "prompts") if can.prompts else []
    listed = [
        OfferedTool(
            name=shown(one.tool.name),
            description=shown(one.tool.description or "")[:TEXT_CHARS],
            effect=effect_of(one.tool, server),
        )
        for one in tools[:LISTED_MAX]
    ]
    return ServerReport(
        ok=True,
        server=shown(about.name if about else ""),
        version=shown(about.version if about else ""),
        protocol=client.protocol_version,
        instructions=shown(client.instructions or "")[:TEXT_CHARS],
        tools=tuple(listed),
        resources=tuple(shown(str(resource.uri)) for resource in resources[:LISTED_MAX]),
        prompts=tuple(shown(prompt.name) for prompt in prompts[:LISTED_MAX]),
        counts=OfferedCounts(tools=len(tools), resources=len(resources), prompts=len(prompts)),
    )


@contextmanager
def _error_stream() -> Iterator[TextIO]:
    with TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        yield cast("TextIO", errors)


def _end_of(errors: TextIO) -> str:
    size = errors.seek(0, 2)
    errors.seek(max(0, size - ERRORS_READ_BYTES))
    return errors.read().strip()
