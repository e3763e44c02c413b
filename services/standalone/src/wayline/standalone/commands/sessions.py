"""The commands `wayline sessions`."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from wayline.standalone.commands.output import AsJson, answer

app = typer.Typer(help="Conversations, of which each job is a turn.", no_args_is_help=True)

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")]


@app.command("list")
def list_sessions(
    agent: Annotated[str | None, typer.Option(help="Only with this agent.")] = None,
    user: Annotated[str | None, typer.Option(help="Only of this user.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 20,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the sessions, the last used first."""
    from wayline.standalone.terminal.session_views import sessions_table

    answer(
        lambda client: client.get("/v1/sessions", agent=agent, user_id=user, limit=limit, cursor=cursor),
        as_json=as_json,
        draw=sessions_table,
    )


@app.command()
def show(
    session: SessionId,
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most so many turns.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a session cost and is about, and its turns, newest first, each with its cost and its cached share."""
    from wayline.standalone.terminal.session_views import session_details

    answer(
        lambda client: client.get(f"/v1/sessions/{quote(session, safe='')}", limit=limit, cursor=cursor),
        as_json=as_json,
        draw=session_details,
    )


@app.command()
def delete(session: SessionId, as_json: AsJson = False) -> None:
    """Forget a session: its next job begins a new conversation."""
    answer(
        lambda client: client.delete(f"/v1/sessions/{quote(session, safe='')}"),
        as_json=as_json,
        draw=lambda _: f"{session} is forgotten",
    )
