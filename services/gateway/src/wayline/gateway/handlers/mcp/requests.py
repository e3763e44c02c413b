"""A request of an MCP client, as the methods see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from wayline.gateway.errors import Forbidden
from wayline.gateway.keys import Caller, Scope

if TYPE_CHECKING:
    from wayline.gateway.handlers.mcp.call_ids import CallIds
    from wayline.gateway.handlers.mcp.user_questions import UserQuestions

IDEMPOTENCY_KEY: Final = "wayline/key"
"""In the `_meta` of a call: the same key again is the same call. The registry says it to the servers it calls."""
KEY_MAX: Final = 500
USER: Final = "wayline/user"
"""In the `_meta` of a call: whom it is for, as jobs name their user."""
USER_MAX: Final = 128


class TellProgress(Protocol):
    """Tells the client how far its request is; does nothing where the client did not ask for that."""

    async def __call__(self, progress: float, total: float | None = None, message: str | None = None) -> None: ...


@dataclass(frozen=True)
class McpRequest:
    """Who asks, and how to answer."""

    caller: Caller
    ids: CallIds
    """Of what the request begins."""
    named_by: str
    """What its ids follow from, in words."""
    progress: TellProgress
    questions: UserQuestions
    traced_from: Mapping[str, str] | None
    """The client's own trace: a link, never our parent."""
    user_id: str | None
    """Whom the request is for, where it says so."""
    closes_to_cancel: bool
    """A client without a session cancels a request by closing its answer; one with a session says so."""
    objects_only: bool
    """Its protocol has only objects as structured content: with anything else, a whole list of tools cannot be sent."""

    def require(self, scope: Scope, *, to: str) -> None:
        """Raise Forbidden unless the key has a scope."""
        if scope not in self.caller.scopes:
            raise Forbidden(f"this API key lacks the scope {scope!r}, which is needed to {to}")
