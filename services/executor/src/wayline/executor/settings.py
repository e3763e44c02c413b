"""Every knob of the executor."""

from __future__ import annotations

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from wayline.chassis.settings import EnvironmentSettings
from wayline.executor.adapters.attachments import CACHED_MAX_BYTES, SENT_MAX_BYTES
from wayline.executor.prompt.shorten import RESULT_TOKENS_MAX
from wayline.llm.endpoints import EndpointSettings
from wayline.sandbox.limits import EXECUTION_S_MAX
from wayline.sandbox.sandbox import WORKERS_MAX


class Settings(EnvironmentSettings, EndpointSettings):
    """From `WAYLINE_EXECUTOR_…` variables, and the shared ones that name a model endpoint."""

    model_config = SettingsConfigDict(env_prefix="WAYLINE_EXECUTOR_", populate_by_name=True)

    interactive_slots: int = Field(
        default=256,
        ge=0,
        description="Interactive jobs held at once, and for each eight one more of a tenant that has no other.",
    )
    batch_slots: int = Field(
        default=64,
        ge=0,
        description="Batch jobs held at once, and for each eight one more of a tenant that has no other.",
    )
    tools_fresh_s: float = Field(default=2.0, ge=0, description="How long a listing of tools is used again.")
    tool_wait_s: float = Field(
        default=6.0, gt=0, description="One wait for a tool's reply before it is asked again; one takes 4 s at most."
    )
    absent_tools_wait_s: float = Field(
        default=60.0,
        ge=0,
        description="How long a new job waits for tools of an MCP server that was not reached yet; it then begins "
        "without them, and says so.",
    )
    programs_at_once: int = Field(
        default=WORKERS_MAX, ge=1, description="Programs of agents with `code` that compute at once; others wait."
    )
    programs_per_tenant_max: int = Field(
        default=3, ge=1, description="Of them of one tenant: its next ones wait, though others have a place left."
    )
    program_seconds_max: float = Field(
        default=EXECUTION_S_MAX, gt=0, description="How long one program may compute in all; its waits are not counted."
    )
    snapshot_keys: SecretStr | None = Field(
        default=None,
        description="Keys that sign suspended programs: `id:base64` for each, 32 bytes or more, the newest first. All "
        "executors have the same; without any, a program runs again from its recorded results on another executor. "
        "`wayline up` and the containers make one.",
    )
    decision_ttl_s: float = Field(default=7 * 86_400, gt=0, description="How long a human may take to decide.")
    child_depth_max: int = Field(
        default=3, ge=0, description="How deep jobs may start jobs with `run_agent`; 0: no job may start any."
    )
    children_per_step_max: int = Field(
        default=8, ge=1, description="Jobs that one job may start beside each other, in one answer of its model."
    )
    children_per_job_max: int = Field(default=32, ge=1, description="Jobs that one job may start in all.")
    files_cached_max_bytes: int = Field(
        default=CACHED_MAX_BYTES,
        ge=0,
        description="Images and files kept in memory for the next job that is given them.",
    )
    files_sent_max_bytes: int = Field(
        default=SENT_MAX_BYTES,
        ge=1,
        description="Images and files in all calls of models at once; a call that would exceed it waits.",
    )
    histories_kept_max_bytes: int = Field(
        default=64 * 1024 * 1024, ge=0, description="Histories of sessions kept in memory for the next job of each."
    )
    result_tokens_max: int = Field(
        default=RESULT_TOKENS_MAX, ge=200, description="Longer tool results are shown to the model in a shorter form."
    )
