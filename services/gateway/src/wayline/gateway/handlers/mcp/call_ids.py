"""The ids of what a request of an MCP client begins."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from wayline.contracts import ids

if TYPE_CHECKING:
    from mcp_types import RequestId

CALLS_MAX: Final = 8
"""Of a tool that asks its caller: the first, and those that bring answers."""
_DIGITS: Final = 20


@dataclass(frozen=True)
class CallIds:
    """The ids of what one request begins, derived where any replica can derive them again: to cancel it."""

    digest: str

    @property
    def job_id(self) -> str:
        return f"job_{self.digest}"

    def tool_key(self, tenant: str, number: int = 1) -> str:
        """Return the ledger's key of a tool call outside of any job; of a later `number` one that brings an answer."""
        first = ids.tool_key(tenant, self.call_id, 1, "1")
        return first if number == 1 else f"{first}/{number}"

    @property
    def call_id(self) -> str:
        return f"mcp_{self.digest}"

    @classmethod
    def of_request(cls, tenant: str, session: str | None, request_id: RequestId | None) -> CallIds | None:
        """Return the ids of a request of a session; None: the client has none, and its request ids are not unique."""
        if not session or request_id is None:
            return None
        return cls(_digest("request", tenant, session, type(request_id).__name__, str(request_id)))

    @classmethod
    def of_key(cls, tenant: str, key: str, user_id: str | None) -> CallIds:
        """Return the ids of a call that its client gave a key of its own: of another user it is another call."""
        return cls(_digest("key", tenant, key, *(() if user_id is None else (user_id,))))

    @classmethod
    def fresh(cls) -> CallIds:
        """Return ids that nobody can derive."""
        return cls(secrets.token_hex(_DIGITS // 2))


def _digest(*parts: str) -> str:
    return sha256("\n".join(("wayline/mcp", *parts)).encode()).hexdigest()[:_DIGITS]
