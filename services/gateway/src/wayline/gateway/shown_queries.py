"""Which parameters of a request's address stand in its span: those named here, and no others.

An address may carry what opens something: the code and the state of a login, a key in the wrong place.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlencode

from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span, SpanProcessor

QUERY: Final = "url.query"
SHOWN: Final = frozenset(
    {
        *(
            "after",
            "agent",
            "before",
            "cursor",
            "days",
            "enabled",
            "fingerprint",
            "format",
            "group_by",
            "lane",
            "limit",
        ),
        *(
            "mode",
            "page",
            "progress",
            "revoked",
            "schedule",
            "since",
            "slot",
            "status",
            "tag",
            "tenant",
            "tz",
            "until",
        ),
        *("version", "wait"),
    }
)
HIDDEN: Final = "REDACTED"
PARAMETERS_MAX: Final = 50


def shown_query(query: str) -> str:
    """Return a query with the values of those parameters only that may be shown."""
    pairs = parse_qsl(query, keep_blank_values=True)[:PARAMETERS_MAX]
    return urlencode([(name, value if name in SHOWN else HIDDEN) for name, value in pairs])


class ShownQueries(SpanProcessor):
    """Hides all other parameters, before anything exports a span."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        query = (span.attributes or {}).get(QUERY)
        if query is not None:
            span.set_attribute(QUERY, shown_query(str(query)))
