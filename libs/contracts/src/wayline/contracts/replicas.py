"""Running processes of services: what each is, whether it is ready, and how one is told to take no more work."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pydantic import Field

from wayline.contracts.base import Frozen, Request

SERVICES: Final = ("retrieval", "tool_registry", "tracing", "notifier", "router", "executor", "gateway")
NAME_MAX: Final = 300
FINISH_MAX_S: Final = 86_400.0
FINISH_S: Final = 600.0
"""How long what a drained replica has in hand may go on, where nobody says so."""


class ReplicaState(Frozen):
    """One running process of a service, as it tells of itself."""

    name: str = Field(description="Its service, its host and its process: it is drained by this.")
    service: str
    version: str
    needs: dict[str, str] = Field(description="What it needs, by name: `ok`, or what is wrong with it.")
    ready: bool = Field(description="All that it needs works, and it takes work.")
    in_hand: int = Field(description="Messages, jobs and requests that it is at work on.")
    drained_at: datetime | None = Field(default=None, description="Since when it takes no more work; null: it does.")


class DescribeReplicas(Request, subject="replicas.list.{service}.{tenant}", replies=ReplicaState):
    """Ask every replica of a service what it is; each answers."""

    service: str = Field(default="", exclude=True)


class DrainReplica(Request, subject="replicas.drain.{service}.{tenant}", replies=ReplicaState):
    """Have one replica take no more work, or take it again. It alone answers."""

    service: str = Field(default="", exclude=True)
    name: str = Field(max_length=NAME_MAX)
    undo: bool = Field(default=False, description="Take work again.")
    finish_s: float = Field(
        default=FINISH_S,
        ge=0,
        le=FINISH_MAX_S,
        description="How long jobs in hand may go on; then each is handed to another executor after its present step.",
    )
