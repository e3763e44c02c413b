"""The session id of an MCP client that shakes hands: it tells its requests from others', and what it can be asked.

No replica keeps anything of a session, so what a client says of itself travels in its id.
"""

from __future__ import annotations

import secrets
from typing import Any, Final

from mcp_types import (
    ClientCapabilities,
    ElicitationCapability,
    FormElicitationCapability,
    RootsCapability,
    SamplingCapability,
)
from pydantic import ValidationError
from starlette.requests import Request

SESSION_HEADER: Final = "mcp-session-id"
SESSION_MAX: Final = 128
FORMS, SAMPLING, ROOTS = "f", "s", "r"
"""What stands in an id for what its client can be asked: forms for its user, its model, its folders."""


def new_session(params: Any) -> str:
    """Return an id for a client whose `initialize` has these parameters."""
    try:
        declared = ClientCapabilities.model_validate(params["capabilities"])
    except (ValidationError, KeyError, TypeError):
        # The library tells the client what is wrong with them.
        declared = ClientCapabilities()
    able = {
        FORMS: shows_forms(declared),
        SAMPLING: declared.sampling is not None,
        ROOTS: declared.roots is not None,
    }
    return f"{secrets.token_hex(16)}-{''.join(letter for letter, can in able.items() if can)}"


def session_of(request: Request) -> str | None:
    """Return the session that a client was given when it shook hands."""
    session = request.headers.get(SESSION_HEADER)
    return session if session and len(session) <= SESSION_MAX else None


def capabilities_of(session: str | None) -> ClientCapabilities:
    """Return what the client of a session can be asked."""
    able = (session or "").partition("-")[2]
    return ClientCapabilities(
        elicitation=ElicitationCapability(form=FormElicitationCapability()) if FORMS in able else None,
        sampling=SamplingCapability() if SAMPLING in able else None,
        roots=RootsCapability() if ROOTS in able else None,
    )


def shows_forms(capabilities: ClientCapabilities | None) -> bool:
    """Return whether a client shows its user forms; one that names no kind of elicitation means forms."""
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)
