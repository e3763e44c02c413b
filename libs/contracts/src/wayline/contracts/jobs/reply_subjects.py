"""Where the outcome of a job may be sent."""

from __future__ import annotations

import re

REPLY_TO_MAX = 255
"""Characters of a reply subject."""
_LITERAL = re.compile(r"[!-)+,/-=?-~-]+(\.[!-)+,/-=?-~-]+)+")
"""A subject of printable ASCII without white space, wildcards or empty parts."""


def may_reply_to(tenant: str, subject: str) -> bool:
    """Return whether a result may be sent there: to an inbox or to the tenant's own replies, in plain characters."""
    literal = len(subject) <= REPLY_TO_MAX and _LITERAL.fullmatch(subject) is not None
    return literal and subject.startswith(("_INBOX.", f"replies.{tenant}."))
