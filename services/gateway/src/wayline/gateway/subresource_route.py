"""Routes below an id that may hold slashes, such as `/documents/{document_id:path}/chunks`."""

from __future__ import annotations

from urllib.parse import unquote

from starlette.routing import Match
from starlette.types import Scope

from wayline.gateway.strict_json import StrictRoute


class SubresourceRoute(StrictRoute):
    """A route whose last word follows a slash as it was sent: after `%2F` the word belongs to the id."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        if match is Match.NONE or _last_segment(scope) != self.path.rpartition("/")[2]:
            return Match.NONE, {}
        return match, child_scope


def _last_segment(scope: Scope) -> str:
    # `path` is decoded: a slash of the id looks there like one between segments.
    return unquote(scope["raw_path"].rpartition(b"/")[2].decode("latin-1"))
