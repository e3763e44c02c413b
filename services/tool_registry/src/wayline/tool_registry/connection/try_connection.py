"""Connect to a server once, and report what it is and what it offers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TextIO

from wayline.contracts.mcp_servers import OfferedCounts, OfferedTool, ServerReport, UndeclaredTool
from wayline.contracts.server_config import CONFIG_MAX_BYTES, ServerSettings
from wayline.llm.tokens import estimate_definitions
from wayline.tool_registry.connection.failures import reason
from wayline.tool_registry.connection.mcp_library import load
from wayline.tool_registry.connection.mcp_sessions import entered
from wayline.tool_registry.connection.offered_tools import (
    OfferedTools,
    every_page,
    offered_tools,
    redacted_tools,
)
from wayline.tool_registry.connection.server_transport import Confinement, MakeAuth, Transport
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.definitions import (
    Definition,
    fingerprint_of_all,
    instructions_of,
    require_moderate,
)
from wayline.tool_registry.definitions.left_out_tools import left_out_lines
from wayline.tool_registry.definitions.tool_catalogue import admit_all, effect_of, proposed_effect
from wayline.tool_registry.definitions.undeclared_effects import undeclared_tools
from wayline.tool_registry.definitions.visible_text import visible
from wayline.tool_registry.settings import Settings

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import Tool

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


@dataclass(frozen=True)
class TriedServer:
    """What became of a try: the report, and what the server's tools are."""

    report: ServerReport
    definitions: tuple[Definition, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why each tool cannot be used as it is defined, by its server's name for it."""
    undeclared: tuple[UndeclaredTool, ...] = ()
    """The tools that count as `once` because nobody has declared their effect."""


async def try_connection(
    server: ServerSettings, settings: Settings, *, confined: Confinement, authorize: MakeAuth | None = None
) -> TriedServer:
    """Return what a server offers, or why it cannot be connected to or used; secrets are in neither."""
    await load()
    started = time.perf_counter()
    with error_stream() as errors:
        transport = Transport(
            server,
            connections_max=CONNECTIONS,
            confined=confined,
            result_bytes=settings.result_max_bytes,
            errors_to=errors.stream,
            authorize=authorize,
            ca_file=settings.ca_path,
        )
        try:
            tried = await _tried(transport, server, within_s=settings.try_timeout_s)
        except Exception as error:
            # A server is foreign code: every failure of it is reported.
            late = isinstance(error, TimeoutError) and not transport.ended
            failure = transport.ended or reason(error)
            why = f"no answer within {settings.try_timeout_s:g} s" if late else transport.hide(failure)
            written = visible(transport.hide(errors.end())[-ERRORS_CHARS:])
            tried = TriedServer(ServerReport(ok=False, why=visible(why[:WHY_CHARS]), errors=written))
    took_ms = (time.perf_counter() - started) * 1000
    return replace(tried, report=tried.report.model_copy(update={"took_ms": took_ms}))


async def _tried(transport: Transport, server: ServerSettings, *, within_s: float) -> TriedServer:
    """Connect, and take the server's tools in as a saved server's are. Raises TooMuchOffered."""
    from mcp import Client

    until = asyncio.get_running_loop().time() + within_s
    async with transport.opened():
        await transport.resolve()
        client = Client(transport.target(), cache=None)
        async with entered(client, within_s=within_s), asyncio.timeout_at(until):
            offered = await offered_tools(client) if client.server_capabilities.tools else OfferedTools()
            taken = await asyncio.to_thread(redacted_tools, offered.tools, transport.without_secrets)
            about = transport.without_secrets(client.instructions or "")
            definitions = [*(one.definition for one in taken), instructions_of(client.instructions, shown=about)]
            require_moderate(definitions)
            tools = [one.tool for one in taken]
            admitted = await asyncio.to_thread(admit_all, tools, server, Arguments(), retry_after_s=())
            left_out = {**offered.unread, **admitted.left_out}
            usable = [tool for tool in tools if tool.name not in left_out]
            tokens = {tool.offered_as: estimate_definitions((tool.definition,)) for tool in admitted.tools.values()}
            report = await _report(client, server, usable, tokens, lambda text: visible(transport.hide(text)))
    nameless = len(offered.tools) - len(taken)
    counts = report.counts.model_copy(update={"tools": len(offered.tools) + len(offered.unread)})
    problems = left_out_lines(left_out, nameless=nameless)
    more = {"counts": counts, "problems": problems, "sha256": fingerprint_of_all(definitions)}
    report = report.model_copy(update=more)
    undeclared = undeclared_tools(admitted.tools.values(), server.effects)
    return TriedServer(report, tuple(one.definition for one in taken), left_out, tuple(undeclared))


async def _report(
    client: Client,
    server: ServerSettings,
    tools: Sequence[Tool],
    tokens: Mapping[str, int],
    shown: Callable[[str], str],
) -> ServerReport:
    can, about = client.server_capabilities, client.server_info
    resources = await every_page(client.list_resources, "resources") if can.resources else []
    prompts = await every_page(client.list_prompts, "prompts") if can.prompts else []
    listed = [
        OfferedTool(
            name=shown(one.name),
            description=shown(one.description or "")[:TEXT_CHARS],
            effect=effect_of(one, server),
            proposed=proposed_effect(one, server),
            tokens=tokens.get(one.name, 0),
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


class ErrorStream:
    """The end of what a program writes to its error stream: all of it could fill a disk."""

    def __init__(self, reading: int, stream: TextIO) -> None:
        self._reading = reading
        self._kept = bytearray()
        self.stream = stream
        """What the program is given."""

    def read(self) -> None:
        """Take what has come, and keep the end of it."""
        with suppress(BlockingIOError):
            self._kept += os.read(self._reading, ERRORS_READ_BYTES)
            del self._kept[:-ERRORS_READ_BYTES]

    def end(self) -> str:
        """Return the end of what was written."""
        self.read()
        return self._kept.decode(errors="replace").strip()


@contextmanager
def error_stream() -> Iterator[ErrorStream]:
    """Hold an error stream for a program."""
    loop = asyncio.get_running_loop()
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        with os.fdopen(writing, "w") as stream:
            errors = ErrorStream(reading, stream)
            loop.add_reader(reading, errors.read)
            yield errors
    finally:
        loop.remove_reader(reading)
        os.close(reading)
