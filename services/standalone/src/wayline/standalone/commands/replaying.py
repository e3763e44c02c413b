"""Recorded jobs: to a file, and run again without a network."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from wayline.standalone.commands.jobs import JobId
from wayline.standalone.commands.output import AsJson, answer, console, conversation, print_json

if TYPE_CHECKING:
    from wayline.client import Client

DIVERGED = 1
CANNOT = 2
"""The exit code where nothing was replayed."""

DecisionsOnly = Annotated[
    bool, typer.Option("--decisions", help="Compare what is decided and called, not the words sent to the model.")
]


def export(job: JobId) -> None:
    """Print a job as one self-contained JSON file: its log, its agent and the cards of its models."""
    answer(lambda client: client.get(f"/v1/jobs/{job}/export"), as_json=True)


def replay(
    job: Annotated[str, typer.Argument(metavar="JOB|FILE", help="The job's id, or a file of `wayline jobs export`.")],
    model: Annotated[
        str | None, typer.Option(help="As if `provider/model` had answered: same answers, its prices.")
    ] = None,
    prompt: Annotated[Path | None, typer.Option(help="A file with another system prompt.")] = None,
    decisions: DecisionsOnly = False,
    as_json: AsJson = False,
) -> None:
    """Run a job's decisions and prompts again over its recorded results; nothing is called.

    Exit code 0: identical; 1: it diverges, and where; 2: it cannot be replayed.
    """
    from wayline.standalone.recorded import replay as replaying
    from wayline.standalone.terminal.replay_views import replay_lines

    try:
        if Path(job).is_file():
            recorded = replaying.read_file(Path(job))
        else:
            recorded = conversation(lambda client: replaying.read_job(client, job), as_json=as_json)
        found = replaying.replayed(replaying.changed(recorded, model=model, prompt=prompt), decisions_only=decisions)
    except ValueError as error:
        _cannot(str(error))
    if as_json:
        print_json(found)
    else:
        console().print(replay_lines(found), soft_wrap=True)
    raise typer.Exit(0 if found["identical"] else DIVERGED)


def test(
    files: Annotated[list[Path], typer.Argument(help="Files of `wayline jobs export`.")],
    recorded: Annotated[
        bool, typer.Option("--recorded", help="With the agents of then: no gateway is asked, only the code is tested.")
    ] = False,
    decisions: DecisionsOnly = False,
    as_json: AsJson = False,
) -> None:
    """Replay recorded jobs with today's agents: regression tests of your own. Nothing is called.

    Exit code 0: all are identical; 1: one diverges; 2: one cannot be replayed.
    """
    from wayline.standalone.recorded import replay as replaying
    from wayline.standalone.terminal.replay_views import replays_table

    async def replay_all(client: Client | None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for path in files:
            try:
                job = replaying.read_file(path)
                if client is not None:
                    job = await replaying.with_todays_agent(client, job)
                one = replaying.replayed(job, decisions_only=decisions)
            except ValueError as error:
                one = {"identical": False, "error": str(error)}
            found.append({"file": str(path), **one})
        return found

    if recorded:
        import asyncio

        found = asyncio.run(replay_all(None))
    else:
        found = conversation(replay_all, as_json=as_json)
    if as_json:
        print_json({"replays": found})
    else:
        console().print(replays_table(found))
    if any("error" in one for one in found):
        raise typer.Exit(CANNOT)
    raise typer.Exit(0 if all(one["identical"] for one in found) else DIVERGED)


def fork(
    job: JobId,
    *,
    after: Annotated[
        int | None, typer.Option(min=1, help="The last event that both share; else before the step that failed.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="`provider/model` that goes on.")] = None,
    prompt: Annotated[Path | None, typer.Option(help="A file with another system prompt.")] = None,
    text: Annotated[str | None, typer.Option("--input", help="Another input, with --after 2.")] = None,
    arguments: Annotated[
        str | None, typer.Option(help='Other arguments of calls of the answer at --after: {"1": {…}} by call.')
    ] = None,
    tool_result: Annotated[
        str | None, typer.Option(help="What the tool whose result stands at --after shall have returned.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="With --tool-result: as an error.")] = False,
    without_memory: Annotated[
        list[str] | None,
        typer.Option(metavar="FACT", help="A remembered fact that its model shall not have been told; again for more."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Begin a new job with what another one was told and did; nothing that they share is done or paid for again."""
    body: dict[str, Any] = {"after": after, "model": model, "input": text, "without_memory": without_memory or None}
    try:
        body["prompt"] = prompt.read_text() if prompt is not None else None
        body["arguments"] = json.loads(arguments) if arguments is not None else None
    except (OSError, ValueError) as error:
        _cannot(str(error))
    if tool_result is not None:
        body["tool_result"] = {"content": tool_result, "failed": failed}
    given = {name: value for name, value in body.items() if value is not None}
    # A key of its own, so that a request whose answer was lost makes no second fork when it is sent again.
    headers = {"Idempotency-Key": secrets.token_hex(16)}
    answer(
        lambda client: client.post(f"/v1/jobs/{job}/fork", given, headers=headers),
        as_json=as_json,
        draw=lambda job: f"{job['job_id']}: begun; `wayline jobs tail {job['job_id']}` shows how it goes on",
    )


def _cannot(why: str) -> NoReturn:
    print(f"wayline: {why}", file=sys.stderr)
    raise typer.Exit(CANNOT) from None
