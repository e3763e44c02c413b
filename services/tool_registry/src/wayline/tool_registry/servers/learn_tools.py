"""Learn the tools of one server: as it offers them now, or as they were approved while it cannot be reached."""

from __future__ import annotations

import asyncio
import json
import marshal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from wayline.contracts.server_config import ServerSettings
from wayline.tool_registry.connection.offered_tools import (
    OfferedTools,
    RedactedTool,
    offered_tools,
    read_tool,
    redacted_tools,
)
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.definition_table import ServerPins
from wayline.tool_registry.definitions.definitions import INSTRUCTIONS, Definition, instructions_of
from wayline.tool_registry.definitions.tool_catalogue import AdmittedTools, Tool, admit_all, own_names
from wayline.tool_registry.settings import Settings

if TYPE_CHECKING:
    from mcp import Client

INSTRUCTIONS_MAX_CHARS = 4_000
"""Of a server's instructions, which only the search of tools reads."""
DETERMINISTIC = 2
"""The version of the encoding that knows no references: equal values are equal bytes."""


@dataclass(frozen=True)
class LearnedTools:
    """What is known of a server's tools."""

    tools: Mapping[str, Tool]
    """Those that can be called, by our names for them."""
    left_out: Mapping[str, str]
    """Why each tool cannot be used as it is defined, by the server's name for it."""
    withheld: Mapping[str, str]
    """Why each tool must not be used, by our name for it."""
    names: Mapping[str, str]
    """Our names for all of them, by the server's."""
    instructions: str


class ToolLearner:
    """Takes a server's tools in, and only anew where they, or what is approved of them, have changed."""

    def __init__(
        self,
        server: ServerSettings,
        settings: Settings,
        arguments: Arguments,
        *,
        pins: ServerPins | None,
        without_secrets: Callable[[Any], Any],
    ) -> None:
        self._server = server
        self._settings = settings
        self._arguments = arguments
        self._pins = pins
        self._without_secrets = without_secrets
        self._listing: bytes | None = None
        """The hash of the list that was read last."""
        self._taken: list[RedactedTool] = []
        self._about = Definition("", "", "")
        self._learned: tuple[bytes, frozenset[tuple[str, str]], LearnedTools] | None = None

    async def learn(self, client: Client, *, within_s: float) -> LearnedTools:
        """Ask for the server's tools, page by page, and take in those that are as they were approved."""
        async with asyncio.timeout(within_s):
            offered = await offered_tools(client)
        instructions = self._without_secrets(client.instructions or "")
        listing = await asyncio.to_thread(_digest, offered, client.instructions)
        if listing != self._listing:
            # On a thread: two thousand tools take seconds.
            self._taken = await asyncio.to_thread(redacted_tools, offered.tools, self._without_secrets)
            self._about = instructions_of(client.instructions, shown=instructions)
            self._listing = listing
        withheld = {} if self._pins is None else await self._pins.withheld([*self._definitions(), self._about])
        known = self._learned
        if known is None or known[:2] != (listing, frozenset(withheld.items())):
            allowed = [one.tool for one in self._taken if one.tool.name not in withheld]
            # Also of those that are withheld: theirs are no others' meanwhile.
            names = own_names(self._server.name, [one.tool.name for one in self._taken])
            admitted = await self._admitted(allowed, names)
            learned = self._with(admitted, withheld, names, instructions, unread=offered.unread)
            known = self._learned = listing, frozenset(withheld.items()), learned
        return known[2]

    async def recall(self) -> LearnedTools | None:
        """Return the tools as they were approved, for a server that was not reached yet; None: none ever were."""
        approved = None if self._pins is None else await self._pins.approved()
        if approved is None:
            return None
        found = await asyncio.to_thread(lambda: [read_tool(json.loads(text)) for text in approved])
        tools = [one for one in found if not isinstance(one, str)]
        names = own_names(self._server.name, [one.name for one in tools])
        return self._with(await self._admitted(tools, names), {}, names, "")

    def _definitions(self) -> list[Definition]:
        return [one.definition for one in self._taken]

    async def _admitted(self, tools: Sequence[Any], names: Mapping[str, str]) -> AdmittedTools:
        retry_after_s = self._settings.retry_after_s
        admit = partial(admit_all, tools, self._server, self._arguments, retry_after_s=retry_after_s, names=names)
        return await asyncio.to_thread(admit)

    def _with(
        self,
        admitted: AdmittedTools,
        withheld: Mapping[str, str],
        names: Mapping[str, str],
        instructions: str,
        *,
        unread: Mapping[str, str] | None = None,
    ) -> LearnedTools:
        return LearnedTools(
            tools=admitted.tools,
            left_out={**(unread or {}), **admitted.left_out},
            withheld={names[name]: why for name, why in withheld.items() if name in names},
            names=names,
            instructions="" if INSTRUCTIONS in withheld else instructions[:INSTRUCTIONS_MAX_CHARS],
        )


def _digest(offered: OfferedTools, instructions: str | None) -> bytes:
    """Return the hash of a list as it came over the wire."""
    listed = [one.raw for one in offered.tools]
    return sha256(marshal.dumps((listed, offered.unread, instructions), DETERMINISTIC)).digest()
