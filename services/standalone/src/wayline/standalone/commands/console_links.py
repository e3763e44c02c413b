"""The command `wayline open`, and where the console shows a job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from wayline.standalone.commands.arguments import fail
from wayline.standalone.commands.output import AsJson, console, conversation, print_json

if TYPE_CHECKING:
    from wayline.client import Client


async def link_of(client: Client, job_id: str | None = None) -> str | None:
    """Return where the console shows a job, or its first page; None: the gateway knows no console."""
    me: dict[str, Any] = await client.get("/v1/me")
    console_url = me.get("links", {}).get("console")
    if console_url is None or job_id is None:
        return console_url
    return f"{console_url}/jobs/{quote(job_id, safe='')}"


async def link_or_none(client: Client, job_id: str) -> str | None:
    """Return where the console shows a job; None also where the gateway refuses to say it: the job goes on."""
    from wayline.client import ApiError

    try:
        return await link_of(client, job_id)
    except ApiError:
        return None


def open_console(
    job: Annotated[str | None, typer.Argument(help="A job's id; without one the console's first page.")] = None,
    *,
    only_print: Annotated[bool, typer.Option("--print", help="Only print its address.")] = False,
    as_json: AsJson = False,
) -> None:
    """Open the console in a browser, at a job or at its first page, and print its address."""
    link = conversation(lambda client: link_of(client, job), as_json=as_json)
    if link is None:
        fail("this gateway knows no console: `wayline up` starts one, or set WAYLINE_GATEWAY_CONSOLE_URL")
    if as_json:
        print_json({"url": link})
        return
    console().print(link, soft_wrap=True, markup=False)
    if not only_print and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(link)
