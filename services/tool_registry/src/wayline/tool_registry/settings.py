"""Every knob of the registry; servers come as JSON in `WAYLINE_TOOL_REGISTRY_SERVERS`."""

from __future__ import annotations

from pydantic import Field, NonNegativeFloat, SecretStr, field_validator
from pydantic_settings import SettingsConfigDict

from wayline.chassis.settings import EnvironmentSettings
from wayline.contracts.mcp_servers import ServerSettings
from wayline.tool_registry.secret_keys import SecretKeys

SEPARATOR = "__"
"""Between a server's name and its tool's: `github__search_issues`."""


class Settings(EnvironmentSettings):
    """The registry's own settings."""

    model_config = SettingsConfigDict(env_prefix="WAYLINE_TOOL_REGISTRY_")

    servers: tuple[ServerSettings, ...] = Field(default=(), description="MCP servers beside the built-in tools.")
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
    retry_after_s: tuple[NonNegativeFloat, ...] = Field(
        default=(1, 2), description="Waits before each repeat of a read."
    )
    knowledge_timeout_s: float = Field(default=20, gt=0, description="How long `search_knowledge` may take.")
    connect_timeout_s: float = Field(default=20, gt=0, description="How long connecting to a server may take.")
    available_within_s: float = Field(default=2, gt=0, description="How long a call waits for a server that is away.")
    list_within_s: float = Field(default=4, gt=0, description="How long a listing waits for servers never reached yet.")
    reconnect_wait_max_s: float = Field(default=15, gt=0)
    probe_every_s: float = Field(default=30, gt=0, description="How often a quiet server is asked for its tools.")
    keep_days: int = Field(default=45, ge=31, description="Ledger rows outlive the job logs, which are kept 30 days.")
    result_max_bytes: int = Field(default=8 * 1024 * 1024, ge=1)
    keys: SecretStr = Field(
        default=SecretStr(""),
        description="Keys of the secrets of tenants' servers, `id:base64` of 32 bytes each, parted by commas: the "
        "first one encrypts, all decrypt. Not set: a server with secrets cannot be saved. `wayline up` makes one.",
    )
    commands: tuple[str, ...] = Field(
        default=(),
        description="Programs that tenants' servers may be, by exact name or path; none: only by URL.",
    )
    private_servers: bool = Field(
        default=False,
        description="Let tenants' servers be at loopback, private and link-local addresses.",
    )
    servers_per_tenant_max: int = Field(default=50, ge=1, description="Servers that a tenant may save.")
    reread_every_s: float = Field(
        default=15,
        gt=0,
        description="How often tenants' servers are read again, should the notice of a change have been lost.",
    )
    program_memory_mb: int = Field(default=2_048, ge=64, description="Memory of a tenant's program.")
    program_files_max: int = Field(default=1_024, ge=16, description="Files that a tenant's program may hold open.")
    program_file_mb: int = Field(default=1_024, ge=1, description="Size of a file that a tenant's program may write.")

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
