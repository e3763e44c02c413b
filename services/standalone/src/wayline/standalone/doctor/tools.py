"""The tools: which of the configured MCP servers answer."""

from __future__ import annotations

from wayline.client import Address, ApiError, Client
from wayline.standalone.doctor.finding import Findings, ok, problem, warning
from wayline.standalone.doctor.gateway import gateway_url
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation


async def programs_of_tenants() -> Findings:
    """Try to isolate a program, where tenants may have some."""
    from wayline.tool_registry.programs.jails import Jails
    from wayline.tool_registry.settings import Settings as RegistrySettings

    registry = RegistrySettings()
    if not registry.commands or registry.programs == "off":
        yield ok("programs", "tenants may have none")
    elif registry.programs == "unconfined":
        text = "programs of tenants run unconfined: they can read what the tool registry can, keys too"
        yield warning("programs", text, "unset WAYLINE_TOOL_REGISTRY_PROGRAMS where you do not trust them all")
    elif (why := await Jails.by(registry.programs_dir, reads=registry.program_reads).why_not()) is not None:
        text = f"programs of tenants do not run, because they cannot be isolated here: {why}"
        yield problem("programs", text, "docs/tools.md has what it needs; or WAYLINE_TOOL_REGISTRY_PROGRAMS=unconfined")
    else:
        yield ok("programs", "programs of tenants are isolated")


async def examine_tools(settings: Settings, installation: Installation) -> Findings:
    """Ask the registry for its tools, and for the servers that it cannot reach."""
    running = installation.running()
    if gateway_url(settings, installation) is None or (running or {}).get("servers_only"):
        return
    try:
        async with Client(Address.from_environment()) as client:
            listed = await client.whole("/v1/tools", "tools")
    except ApiError as error:
        yield warning("tools", f"could not be listed: {error}", "check that the tool registry runs")
        return
    for server in listed.get("away", ()):
        text = f"the MCP server {server['name']!r} does not answer: {server['why']}"
        yield problem("tools", text, "start it, or disable it: `wayline mcp disable`, or WAYLINE_TOOL_REGISTRY_SERVERS")
    if not listed.get("away"):
        yield ok("tools", f"{len(listed['tools'])} tools, every MCP server answers")
