"""The command `wayline audit`."""

from __future__ import annotations

from typing import Annotated

import typer

from wayline.standalone.commands.arguments import past_moment
from wayline.standalone.commands.output import AsJson, answer


def audit(
    *,
    kind: Annotated[str | None, typer.Option(help="Only of this kind: agent, budget, API key, approval, …")] = None,
    name: Annotated[str | None, typer.Option(help="Only of what has this name.")] = None,
    by: Annotated[str | None, typer.Option(help="Only by the API key of this name.")] = None,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="Only since: 7d, 12h, or a date (UTC).")] = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Only before, alike.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000)] = 50,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: AsJson = False,
) -> None:
    """List who changed what, and who approved: the newest first."""
    from wayline.standalone.terminal.action_views import audit_table

    wanted = {"kind": kind, "name": name, "by": by, "limit": limit, "cursor": cursor}
    moments = {"since": past_moment(since, "--since"), "until": past_moment(until, "--until")}
    answer(lambda client: client.get("/v1/audit", **wanted, **moments), as_json=as_json, draw=audit_table)
