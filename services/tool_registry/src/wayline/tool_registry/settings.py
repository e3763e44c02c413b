"""Every setting of the registry; servers come as JSON in `WAYLINE_TOOL_REGISTRY_SERVERS`."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from ssl import SSLError, create_default_context
from typing import Literal, Self

from pydantic import Field, NonNegativeFloat, SecretStr, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from wayline.chassis.settings import EnvironmentSettings, HttpUrl, Port
from wayline.contracts import ids
from wayline.contracts.server_config import ServerSettings
from wayline.guarded_http import PORTS, AddressPolicy
from wayline.tool_registry.images.image_prices import ImagePrices, known_prices
from wayline.tool_registry.programs.allowed_programs import AllowedCommand, ProgramsMode
from wayline.tool_registry.secrets.secret_keys import SecretKeys

OPENAI_URL = "https://api.openai.com/v1"
SEPARATOR = "__"
"""Between a server's name and its tool's: `github__search_issues`."""


PROXY = re.compile(r"https?://(?:[^@/\s]+@)?[A-Za-z0-9.\[\]:_-]+/?")


def _allowed(hosts: tuple[str, ...], *, tenant: str | None) -> AddressPolicy:
    """Return the policy of hosts that are opened for all tenants or for this one; None: for any. Raises ValueError."""
    parts = [one.rpartition("@") for one in hosts]
    return AddressPolicy.of(host for owner, _, host in parts if tenant is None or owner in ("", tenant))


class Settings(EnvironmentSettings):
    """The registry's own settings."""

    model_config = SettingsConfigDict(env_prefix="WAYLINE_TOOL_REGISTRY_")

    servers: tuple[ServerSettings, ...] = Field(default=(), description="MCP servers beside the built-in tools.")
    trusted_services: tuple[str, ...] = Field(
        default=(),
        description="Services on the bus whose changed tools need no approval, as patterns of `tenant/service`: "
        "`default/*` trusts all that one tenant's credentials may offer.",
    )
    lease_s: float = Field(
        default=6, gt=0, description="A call whose lease was not renewed for this long may be taken over."
    )
    answer_within_s: float = Field(default=4, gt=0, description="A caller gets `in_progress` after this long.")
    cancel_wait_s: float = Field(
        default=20,
        ge=0,
        description="How long a cancelled call that its tool has begun may go on.",
    )
    attempts_max: int = Field(default=3, ge=1, description="Executions of one key before a person must decide.")
    calls_max: int = Field(default=256, ge=1, description="Calls running at once in this process.")
    calls_per_server_max: int = Field(
        default=64, ge=1, description="Of them on one MCP server, so that one that hangs leaves slots to others."
    )
    calls_per_tenant_max: int = Field(
        default=96,
        ge=1,
        description="Of them of one tenant, on all its servers: those that hang leave slots to others.",
    )
    answers_per_tenant_max_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=1,
        description="Of answers of one tenant's servers that are being received at once; one for which there is no "
        "room is cut.",
    )
    retry_after_s: tuple[NonNegativeFloat, ...] = Field(
        default=(1, 2), description="Waits before each repeat of a read."
    )
    knowledge_timeout_s: float = Field(default=20, gt=0, description="How long `search_knowledge` may take.")
    connect_timeout_s: float = Field(default=20, gt=0, description="How long connecting to a server may take.")
    try_timeout_s: float = Field(
        default=45, gt=0, description="How long trying a server may take: a program may be downloaded first."
    )
    available_within_s: float = Field(default=2, gt=0, description="How long a call waits for a server that is away.")
    list_within_s: float = Field(default=4, gt=0, description="How long a listing waits for servers never reached yet.")
    reconnect_wait_max_s: float = Field(default=15, gt=0)
    probe_every_s: float = Field(default=30, gt=0, description="How often a quiet server is asked for its tools.")
    keep_days: int = Field(default=45, ge=31, description="Ledger rows outlive the job logs, which are kept 30 days.")
    pool_size: int = Field(default=10, ge=2, description="Connections to Postgres.")
    result_max_bytes: int = Field(default=8 * 1024 * 1024, ge=1)
    keys: SecretStr = Field(
        default=SecretStr(""),
        description="Keys of the secrets of tenants' servers, `id:base64` of 32 bytes each, parted by commas: the "
        "first one encrypts, all decrypt. Not set: a server with secrets cannot be saved. `wayline up` makes one.",
    )
    commands: tuple[str | AllowedCommand, ...] = Field(
        default=(),
        description="Programs that tenants' servers may be, by exact name or path; with arguments after it, such as "
        "`npx -y @scope/x@1.2.3`, only command lines that begin with exactly these words. An object of `command` may "
        "have `env`, the names of the variables that may be set, which are none for a plain entry; `reads`, files and "
        "directories that it sees beside those of its command line; and `hosts` that it may reach. None: only by URL.",
    )
    server_allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts of the inside that tenants' servers may be at, with their authorization servers, as JSON: "
        "names, addresses or networks, with a port, or `:*`, where it is not 80, 443, 8080 or 8443; for one tenant "
        "with its name before: `acme@crm.corp.example:9000`.",
    )
    http_proxy: SecretStr | None = Field(
        default=None,
        description="The proxy through which tenants' servers over HTTP, logins, web tools and providers of these are "
        "reached, such as `http://user:password@proxy.example:3128`; what is allowed of the inside is reached past it.",
    )
    ca_file: Path | None = Field(
        default=None,
        description="Certificate authorities in PEM that all connections over HTTPS trust beside the public ones.",
    )
    servers_per_tenant_max: int = Field(
        default=200, ge=1, description="MCP servers that a tenant may save, and services on the bus it may have."
    )
    reread_every_s: float = Field(
        default=15,
        gt=0,
        description="How often tenants' servers are read again, should the notice of a change have been lost.",
    )
    user_connections_max: int = Field(
        default=100, ge=1, description="Users whose own connections to one server may be open at once."
    )
    user_idle_s: float = Field(
        default=300, gt=0, description="How long a user's connection to a server is kept after the last call."
    )
    programs: ProgramsMode = Field(
        default="isolated",
        description="How tenants' programs run: `isolated`, each confined, and refused where this machine cannot; "
        "`unconfined`, with the rights of this process, for those that you trust as you trust your own; or `off`.",
    )
    programs_dir: Path | None = Field(
        default=None,
        description="Where tenants' programs keep what they download, each tenant in a directory of its own. Not set: "
        "`wayline/programs` in the cache directory of this process's user.",
    )
    program_reads: tuple[str, ...] = Field(
        default=(),
        description="Files and directories that every isolated program may read, as JSON: beside the system's and "
        "those of the interpreters on `PATH`. Where this process is root, every user must be allowed to read them.",
    )
    program_memory_mb: int = Field(
        default=2_048, ge=64, description="Memory of a tenant's program, with all that it starts where it is isolated."
    )
    program_processes_max: int = Field(
        default=512,
        ge=8,
        description="Processes and threads of an isolated program; of all programs of its tenant where this process "
        "is root.",
    )
    program_cpu_s: int = Field(
        default=3_600, ge=1, description="Processor time after which a process of an isolated program is ended."
    )
    program_tmp_mb: int = Field(
        default=256, ge=1, description="Size of `/tmp` of an isolated program, and of its `/dev/shm`: both in memory."
    )
    program_files_max: int = Field(default=1_024, ge=16, description="Files that a tenant's program may hold open.")
    program_file_mb: int = Field(default=1_024, ge=1, description="Size of a file that a tenant's program may write.")
    search_embedding_wait_s: float = Field(
        default=1.0,
        gt=0,
        description="How long a search of tools waits for retrieval's embedder; after that it is by words alone.",
    )
    search_vectors_max_bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=1,
        description="Of the vectors of tools that a replica keeps for all tenants. Those used longest ago go first, "
        "and are embedded again when a search needs them.",
    )
    web_fetch: bool = Field(default=True, description="Whether there is the built-in tool `web_fetch`.")
    web_allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts of the inside that web tools may reach, as JSON: names, addresses or networks, with a port "
        "where it is not one of `web_ports`.",
    )
    web_ports: tuple[Port, ...] = Field(default=PORTS, description="The ports that web tools may reach.")
    web_user_agent: str = Field(
        default="Wayline/0.1", pattern=r"^[\x20-\x7e]{1,200}$", description="What web tools call themselves."
    )
    web_robots: bool = Field(default=True, description="Whether `web_fetch` does as the robots.txt of a site asks.")
    web_timeout_s: float = Field(default=20, gt=0, description="How long fetching and reading one page may take.")
    web_fetches_per_tenant_max: int = Field(
        default=12, ge=1, description="Pages of one tenant that are fetched at once in this process; others wait."
    )
    web_fetches_per_host_max: int = Field(
        default=4,
        ge=1,
        description="Requests to one host at once in this process, at most half of them for one tenant; others wait.",
    )
    web_host_delay_s: float = Field(
        default=0.1, ge=0, description="How long after a request to a host the next one begins; robots.txt aside."
    )
    web_page_max_bytes: int = Field(default=10 * 1024 * 1024, ge=1, description="Of one page, unpacked.")
    web_browser: tuple[str, ...] = Field(
        default=(),
        description='A Chromium with its flags, such as `["chromium"]`: it shows pages whose text their scripts make. '
        "It runs as an isolated program does, with its limits. None: such pages have no text.",
    )
    web_browser_timeout_s: float = Field(default=20, gt=0, description="How long the browser may take for one page.")
    web_cache_s: float = Field(default=900, ge=0, description="How long pages and search results are kept.")
    web_cache_max_bytes: int = Field(default=32 * 1024 * 1024, ge=0, description="Of the text of pages that are kept.")
    web_search_provider: Literal["searxng", "brave", "tavily"] | None = Field(
        default=None, description="`searxng`, `brave` or `tavily`; without one there is no tool `web_search`."
    )
    web_search_url: HttpUrl | None = Field(
        default=None, description="The address of the search provider; SearXNG needs it, the others have one."
    )
    web_search_key: SecretStr | None = Field(default=None, description="The key of the search provider.")
    web_search_cost_usd: Decimal = Field(default=Decimal(0), ge=0, description="What one search costs.")
    web_searches_per_minute: int = Field(
        default=30, ge=1, description="Searches of one tenant, in each replica of this service."
    )

    image_model: str | None = Field(
        default=None,
        description="The model of `image_generate`, such as `gpt-image-1.5`; without one there is no such tool.",
    )
    image_base_url: HttpUrl = Field(
        default=OPENAI_URL, description="An images API in the form of OpenAI's: {base}/images/generations is called."
    )
    image_key: SecretStr | None = Field(default=None, description="Its key; none: it wants none.")
    image_usd: Decimal | None = Field(
        default=None,
        ge=0,
        description="What one image costs; none: what the catalogue says of the model. 0: it is free.",
    )
    image_timeout_s: float = Field(default=180, gt=0, description="How long making one image may take.")
    image_max_bytes: int = Field(default=10 * 1024 * 1024, ge=1, description="Of one image.")
    images_per_minute: int = Field(default=10, ge=1, description="Of one tenant, in each replica of this service.")

    @field_validator("server_allowed_hosts")
    @classmethod
    def _hosts_of_servers(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for one in hosts:
            tenant, at, _ = one.rpartition("@")
            if at and not ids.is_tenant(tenant):
                raise ValueError(f"{one!r}: {tenant!r} is no tenant")
        _allowed(hosts, tenant=None)
        return hosts

    @field_validator("http_proxy")
    @classmethod
    def _is_a_proxy(cls, proxy: SecretStr | None) -> SecretStr | None:
        if proxy is not None and not PROXY.fullmatch(proxy.get_secret_value()):
            raise ValueError("http_proxy is not of the form http://proxy.example:3128 or http://user:password@…")
        return proxy

    @field_validator("ca_file")
    @classmethod
    def _holds_certificates(cls, file: Path | None) -> Path | None:
        if file is None:
            return None
        try:
            create_default_context(cafile=str(file))
        except (OSError, SSLError) as error:
            raise ValueError(f"ca_file holds no certificates in PEM: {error}") from None
        return file

    def addresses_of(self, tenant: str) -> AddressPolicy:
        """Return what a tenant's servers may be at: the public internet, and what is opened of the inside for it."""
        return _allowed(self.server_allowed_hosts, tenant=tenant)

    @property
    def proxy_url(self) -> str | None:
        """Return the proxy with its password."""
        return None if self.http_proxy is None else self.http_proxy.get_secret_value()

    @property
    def ca_path(self) -> str | None:
        """Return where the installation's own certificate authorities are."""
        return None if self.ca_file is None else str(self.ca_file)

    @field_validator("web_allowed_hosts")
    @classmethod
    def _hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        AddressPolicy.of(hosts)
        return hosts

    @model_validator(mode="after")
    def _can_search(self) -> Self:
        if self.web_search_provider == "searxng" and self.web_search_url is None:
            raise ValueError("web_search_provider searxng needs web_search_url, the address of your SearXNG")
        if self.web_search_provider in ("brave", "tavily") and self.web_search_key is None:
            raise ValueError(
                f"web_search_provider {self.web_search_provider} needs web_search_key, the key it gave you"
            )
        return self

    @model_validator(mode="after")
    def _can_make_images(self) -> Self:
        if self.image_model is None:
            return self
        if self.image_base_url == OPENAI_URL and self.image_key is None:
            raise ValueError(
                "image_model needs image_key, OpenAI's key, or image_base_url, the address of your own server"
            )
        if self.image_prices() is None:
            raise ValueError(
                f"no price is known for images of {self.image_model}: set image_usd, dollars per image; 0 where "
                "it is free"
            )
        return self

    def image_prices(self) -> ImagePrices | None:
        """Return what images cost: as the settings give it, else as the catalogue does; None: it is not known."""
        if self.image_usd is not None:
            return ImagePrices.flat(self.image_usd)
        return known_prices(self.image_model) if self.image_model is not None else None

    def missing_tools(self) -> dict[str, str]:
        """Return why each built-in tool that is not configured is not there, by name."""
        why = {
            "web_fetch": None if self.web_fetch else "WAYLINE_TOOL_REGISTRY_WEB_FETCH switches it off",
            "web_search": None if self.web_search_provider else "set WAYLINE_TOOL_REGISTRY_WEB_SEARCH_PROVIDER",
            "image_generate": None if self.image_model else "set WAYLINE_TOOL_REGISTRY_IMAGE_MODEL",
        }
        return {name: f"this installation has no {name}: {reason}" for name, reason in why.items() if reason}

    @field_validator("servers")
    @classmethod
    def _named_once(cls, servers: tuple[ServerSettings, ...]) -> tuple[ServerSettings, ...]:
        names = [server.name for server in servers]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"server names must differ; twice: {', '.join(sorted(twice))}")
        return servers

    @field_validator("keys")
    @classmethod
    def _are_keys(cls, keys: SecretStr) -> SecretStr:
        SecretKeys.parse(keys.get_secret_value())
        return keys

    def secret_keys(self) -> SecretKeys:
        """Return the keys that encrypt the secrets of tenants' servers."""
        return SecretKeys.parse(self.keys.get_secret_value())
