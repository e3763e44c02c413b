"""The commands of `wayline mcp` for logins to servers."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from wayline.standalone.commands.arguments import ServerName, fail
from wayline.standalone.commands.output import AsJson, answer, console, conversation, print_json

app = typer.Typer()

LOGIN_POLL_S = 2.0
LOGIN_POLLS = 300


@app.command()
def login(
    name: ServerName,
    user: Annotated[str | None, typer.Option(metavar="ID", help="Log in this user, for their own jobs.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page here.")] = True,
    as_json: AsJson = False,
) -> None:
    """Log in to a server with OAuth: open its page, and wait until it is connected. Exit code 1: it is not."""
    path, body = f"/v1/mcp/servers/{name}", {"user_id": user}
    before = None if user is None else conversation(lambda client: _login_of(client, name, user), as_json=as_json)
    begun = conversation(
        lambda client: client.post(f"{path}/authorize") if user is None else client.post(f"{path}/logins", body),
        as_json=as_json,
    )
    if as_json:
        print_json(begun)
        return
    print(f"Open this page within ten minutes:\n{begun['url']}")
    if browser:
        typer.launch(begun["url"])
    if user is not None:
        if not conversation(lambda client: _user_logged_in(client, name, user, before), as_json=as_json):
            fail(f"{user} is not logged in to {name}: nobody came back from the page")
        print(f"{user} is logged in to {name}")
        return
    server = conversation(lambda client: _logged_in(client, name), as_json=as_json)
    from wayline.standalone.terminal.server_views import server_line

    console().print(server_line(server), soft_wrap=True)
    if server["state"] != "connected":
        raise typer.Exit(1)


@app.command()
def logout(
    name: Annotated[str | None, typer.Argument(help="As `wayline mcp list` shows it.")] = None,
    user: Annotated[str | None, typer.Option(metavar="ID", help="This user's; without a server: of every one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Forget a server's tokens: the tenant's, or a user's."""
    if name is None:
        if user is None:
            fail("give the server's name, or --user for a user's tokens of every server")
        answer(
            lambda client: client.delete(f"/v1/mcp/logins?{urlencode({'user_id': user})}"),
            as_json=as_json,
            draw=lambda reply: f"{user} is logged out of: {', '.join(reply['servers']) or 'no server'}",
        )
        return
    path = "authorization" if user is None else f"logins?{urlencode({'user_id': user})}"
    who = "" if user is None else f" for {user}"
    answer(
        lambda client: client.delete(f"/v1/mcp/servers/{name}/{path}"),
        as_json=as_json,
        draw=lambda _: f"{name} is logged out{who}",
    )


@app.command()
def logins(name: ServerName, as_json: AsJson = False) -> None:
    """List the users who are logged in to a server."""
    from wayline.standalone.terminal.server_views import logins_table

    found = conversation(lambda client: _all_logins(client, name), as_json=as_json)
    if as_json:
        print_json({"logins": found})
    else:
        console().print(logins_table(found), soft_wrap=True)


async def _all_logins(client: Any, name: str) -> list[dict[str, Any]]:
    pages = client.pages(f"/v1/mcp/servers/{name}/logins")
    return [login async for page in pages for login in page["logins"]]


async def _login_of(client: Any, name: str, user: str) -> dict[str, Any] | None:
    page = await client.get(f"/v1/mcp/servers/{name}/logins", user_id=user)
    return next(iter(page["logins"]), None)


async def _user_logged_in(client: Any, name: str, user: str, before: dict[str, Any] | None) -> bool:
    """Return whether a user logged in anew before the time for that was over."""
    for _ in range(LOGIN_POLLS):
        now = await _login_of(client, name, user)
        if now is not None and (before is None or now["logged_in_at"] != before["logged_in_at"]):
            return True
        await asyncio.sleep(LOGIN_POLL_S)
    return False


async def _logged_in(client: Any, name: str) -> dict[str, Any]:
    """Return a server once it is connected, or when the time for a login is over."""
    for _ in range(LOGIN_POLLS):
        server = await client.get(f"/v1/mcp/servers/{name}")
        if server["state"] == "connected":
            return server
        await asyncio.sleep(LOGIN_POLL_S)
    return await client.get(f"/v1/mcp/servers/{name}")
