"""What a server says of its resources and prompts is cut before it is looked at."""

from __future__ import annotations

import asyncio
from typing import Any

from wayline.contracts.server_resources import ListServerPrompts, ListServerResources
from wayline.tool_registry.definitions import visible_text
from wayline.tool_registry.servers.mcp_server import McpServer
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.tenant_servers.handlers import resources as module
from wayline.tool_registry.tenant_servers.handlers.resources import (
    ARGUMENTS_MAX,
    TEXT_CHARS,
    URI_CHARS,
    ResourceHandlers,
)

LONG = "\u202e" * 200_000


def handlers(answer: dict[str, Any]) -> ResourceHandlers:
    """Return the handlers of an installation whose one server gives an answer."""
    server = McpServer.__new__(McpServer)
    server.name = "s"
    server.ask = lambda _: asyncio.sleep(0, answer)  # pyright: ignore[reportAttributeAccessIssue]
    of: Any = type("Servers", (), {"of_installation": {"s": server}})()
    nothing: Any = None
    return ResourceHandlers(nothing, of, nothing, Settings())


async def test_long_names_and_addresses_are_cut_before_they_are_looked_at(monkeypatch):
    seen, visible = list[int](), visible_text.visible
    monkeypatch.setattr(module, "visible", lambda text: seen.append(len(text)) or visible(text))
    one = {"name": LONG, "uri": LONG, "mimeType": LONG, "title": LONG}
    template = {"name": LONG, "uriTemplate": LONG}

    asking = handlers({"resources": [one], "templates": [template]})
    listed = await asking.list_resources(ListServerResources(tenant="t", name="s"))

    assert max(seen) <= URI_CHARS
    assert len(listed.resources[0].uri) == len(listed.templates[0].uri_template) == URI_CHARS
    assert len(listed.resources[0].name) == TEXT_CHARS


async def test_of_a_prompt_with_many_arguments_some_are_listed():
    prompt = {"name": LONG, "arguments": [{"name": "a"}] * 10_000}

    listed = await handlers({"prompts": [prompt]}).list_prompts(ListServerPrompts(tenant="t", name="s"))

    assert len(listed.prompts[0].arguments) == ARGUMENTS_MAX
    assert len(listed.prompts[0].name) == TEXT_CHARS
