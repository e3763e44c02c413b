"""Tell which message a request over HTTP carries, and what is known of its way.

A module of its own, because httpx2 takes a while to import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2
from pydantic_core import from_json

HAS_LEFT = "wayline.has_left"
"""An extension of a request that was sent, perhaps in vain: also of its repeats after a redirect or a new login."""
REFUSED_LOGIN = "wayline.refused_login"
"""An extension of an answer with which a server refuses a login: why, and what to do about it."""
ANSWERED_HERE = "wayline.answered_here"
"""An extension of an answer that our own code made, in place of the server's."""
SESSION_ID = "mcp-session-id"


@dataclass(frozen=True)
class AskedMessage:
    """The message of a request that is to be answered."""

    id: Any
    method: str
    in_session: bool
    """Whether it names a session of the server's."""

    @property
    def is_call(self) -> bool:
        """Return whether it calls a tool."""
        return self.method == "tools/call"


def asked_message(request: httpx2.Request) -> AskedMessage | None:
    """Return the message of a request; None: it is none, or none that is to be answered."""
    if request.method != "POST" or not request.headers.get("Content-Type", "").startswith("application/json"):
        return None
    if not isinstance(request.stream, httpx2.SyncByteStream):
        return None
    try:
        # The repeat of a redirected request has its bytes as a stream.
        message = from_json(request.read())
    except ValueError:
        return None
    if not isinstance(message, dict) or message.get("id") is None or not isinstance(message.get("method"), str):
        return None
    return AskedMessage(message["id"], message["method"], SESSION_ID in request.headers)
