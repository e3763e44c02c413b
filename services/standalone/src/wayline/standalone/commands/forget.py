"""The commands `wayline forget`, and `wayline jobs delete`: all that is of a user or a job, with a receipt."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from wayline.standalone.commands.output import AsJson, answer

if TYPE_CHECKING:
    from wayline.client import Client

app = typer.Typer(help="Forget a user or a subject in every store, with a receipt.", no_args_is_help=True)

POLL_S = 0.5
Within = Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for the receipt; 0: do not.")]
WAIT_S = 60.0


@app.command()
def user(
    user: Annotated[str, typer.Argument(metavar="USER", help="The user's id.")],
    wait: Within = WAIT_S,
    as_json: AsJson = False,
) -> None:
    """Forget a user: jobs, sessions, documents, memories, traces, logs."""
    _forget({"user_id": user}, wait_s=wait, as_json=as_json)


@app.command()
def subject(
    subject: Annotated[str, typer.Argument(metavar="TYPE/ID", help="For instance company/acme.")],
    wait: Within = WAIT_S,
    as_json: AsJson = False,
) -> None:
    """Forget a subject, and all insights about it."""
    kind, _, name = subject.partition("/")
    _forget({"subject": {"type": kind, "id": name}}, wait_s=wait, as_json=as_json)


@app.command()
def show(
    forget: Annotated[str, typer.Argument(metavar="ID", help="The id of the request.")], as_json: AsJson = False
) -> None:
    """Show how far a request to forget is, and its receipt."""
    answer(lambda client: client.get(f"/v1/forget/{quote(forget, safe='')}"), as_json=as_json, draw=_drawn)


def delete_job(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")],
    wait: Within = WAIT_S,
    as_json: AsJson = False,
) -> None:
    """Delete an ended job with those that it started; its cost stays in the ledger."""

    async def ask(client: Client) -> Any:
        return await _until_done(client, await client.delete(f"/v1/jobs/{quote(job, safe='')}"), wait_s=wait)

    answer(ask, as_json=as_json, draw=_drawn)


def _forget(body: dict[str, Any], *, wait_s: float, as_json: bool) -> None:
    async def ask(client: Client) -> Any:
        return await _until_done(client, await client.post("/v1/forget", body), wait_s=wait_s)

    answer(ask, as_json=as_json, draw=_drawn)


async def _until_done(client: Client, told: dict[str, Any], *, wait_s: float) -> dict[str, Any]:
    """Return a request to forget once its receipt is whole, or as it is when the wait is over."""
    until = time.monotonic() + wait_s
    while told["step"] != "done" and time.monotonic() < until:
        await asyncio.sleep(POLL_S)
        told = await client.get(f"/v1/forget/{told['forget_id']}")
    return told


def _drawn(told: dict[str, Any]) -> Any:
    from wayline.standalone.terminal.forget_views import receipt

    return receipt(told)
