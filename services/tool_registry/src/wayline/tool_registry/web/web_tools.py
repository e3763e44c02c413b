"""What the web tools work with, made of the settings."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from wayline.guarded_http import AddressPolicy, GuardedClient
from wayline.tool_registry.programs.jails import JailLimits, Jails
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.web.pages.browser import Browser
from wayline.tool_registry.web.pages.document_reader import DocumentReader
from wayline.tool_registry.web.pages.fetch_slots import FetchSlots
from wayline.tool_registry.web.pages.web_pages import WebPages
from wayline.tool_registry.web.searches.provider_searches import WebSearch
from wayline.tool_registry.web.searches.search_providers import PROVIDERS


@dataclass(frozen=True, slots=True)
class WebTools:
    """Pages and searches, where they are configured; nothing is opened before the first is asked for."""

    pages: WebPages | None
    search: WebSearch | None
    clients: tuple[GuardedClient, ...]
    reader: DocumentReader

    async def close(self) -> None:
        """End the processes and connections that are open."""
        await self.reader.close()
        for client in self.clients:
            await client.close()


def web_tools(settings: Settings, jails: Jails) -> WebTools:
    """Return the web tools that the settings ask for."""
    agent = settings.web_user_agent
    policy = AddressPolicy.of(settings.web_allowed_hosts, ports=settings.web_ports)
    more = {"user_agent": agent, "proxy": settings.proxy_url, "ca_file": settings.ca_path}
    client, reader = GuardedClient(policy, **more), DocumentReader()
    provider_client = GuardedClient(reaching(settings.web_search_url), **more)
    pages = WebPages(
        client,
        reader,
        browser=_browser(settings, policy, jails),
        slots=FetchSlots(
            per_tenant=settings.web_fetches_per_tenant_max,
            per_host=settings.web_fetches_per_host_max,
            host_delay_s=settings.web_host_delay_s,
        ),
        robots=settings.web_robots,
        timeout_s=settings.web_timeout_s,
        page_max_bytes=settings.web_page_max_bytes,
        cache_s=settings.web_cache_s,
        cache_max_bytes=settings.web_cache_max_bytes,
    )
    return WebTools(
        pages if settings.web_fetch else None, _search(settings, provider_client), (client, provider_client), reader
    )


def _browser(settings: Settings, policy: AddressPolicy, jails: Jails) -> Browser | None:
    if not settings.web_browser:
        return None
    return Browser(
        settings.web_browser,
        policy,
        page_max_bytes=settings.web_page_max_bytes,
        timeout_s=settings.web_browser_timeout_s,
        jails=None if settings.programs == "unconfined" else jails,
        proxy=settings.proxy_url,
        ca_file=settings.ca_path,
        limits=JailLimits(
            memory_mb=settings.program_memory_mb,
            processes_max=settings.program_processes_max,
            cpu_s=settings.program_cpu_s,
            tmp_mb=settings.program_tmp_mb,
        ),
    )


def _search(settings: Settings, client: GuardedClient) -> WebSearch | None:
    name = settings.web_search_provider
    if name is None:
        return None
    key = settings.web_search_key.get_secret_value() if settings.web_search_key else None
    return WebSearch(
        name,
        PROVIDERS[name](settings.web_search_url, key),
        client,
        cost_usd=settings.web_search_cost_usd,
        cache_s=settings.web_cache_s,
        per_minute=settings.web_searches_per_minute,
    )


def reaching(url: str | None) -> AddressPolicy:
    """Return what a provider's client may reach: the public web, and the URL that the installation chose."""
    if url is None:
        return AddressPolicy()
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return AddressPolicy.of([f"{host}:{port}"])
