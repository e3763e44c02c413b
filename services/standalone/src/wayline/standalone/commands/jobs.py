"""Jobs: run one, look at them, steer them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wayline.standalone.commands.output import AsJson, answer, console, conversation, print_json, progress_console

if TYPE_CHECKING:
    from wayline.standalone.client import Api

app = typer.Typer(help="Look at jobs and steer them.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")]

WAITS = 2
"""The exit code of `run` when the job waits for somebody."""


def run(
    task: Annotated[str, typer.Argument(help="What to do; - reads it from the input.")],
    *,
    agent: Annotated[str, typer.Option(help="Which agent does it.")] = "assistant",
    file: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            readable=True,
            help="An image, PDF or text to give it; kept as a document. Can be repeated.",
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="provider/model, instead of the router's choice.")] = None,
    session: Annotated[str | None, typer.Option(help="The conversation it belongs to.")] = None,
    max_steps: Annotated[int | None, typer.Option(help="At most so many steps.")] = None,
    budget: Annotated[str | None, typer.Option(metavar="USD", help="At most so many dollars.")] = None,
    wait: Annotated[bool, typer.Option(help="Follow it to its end, or only submit it.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say its route and its predicted cost.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a job and show it as it happens. Exit code 1: it failed; 2: it waits for somebody."""
    options = {"model": model, "max_steps": max_steps, "budget_usd": budget}
    body = {
        "agent": agent,
        "input": sys.stdin.read() if task == "-" else task,
        "session_id": session,
        "options": {name: value for name, value in options.items() if value is not None},
    }
    if dry_run:
        _plan(body, file or [], as_json=as_json)
        return

    async def work(api: Api) -> dict[str, Any]:
        return await _run(api, await _with_files(api, body, file or []), wait=wait, quiet=as_json)

    job = conversation(work, as_json=as_json)
    _show_end(job, as_json=as_json)


def _plan(body: dict[str, Any], files: list[Path], *, as_json: bool) -> None:
    from wayline.standalone.drawing import planned

    async def work(api: Api) -> dict[str, Any]:
        asked = {**body, "options": {**body["options"], "dry_run": True}}
        return await api.post("/v1/jobs", await _with_files(api, asked, files))

    said = answer(work, as_json=as_json, draw=planned)
    if said["refusal"]:
        raise typer.Exit(1)


async def _with_files(api: Api, body: dict[str, Any], files: list[Path]) -> dict[str, Any]:
    """The same job, with what it is given before the words about it."""
    if not files:
        return body
    from wayline.standalone.ingesting import as_parts

    return {**body, "input": [*await as_parts(api, files), {"type": "text", "text": body["input"]}]}


async def _run(api: Api, body: dict[str, Any], *, wait: bool, quiet: bool) -> dict[str, Any]:
    import secrets

    from wayline.standalone.following import Progress, follow_to_the_end

    # The same key at every try of ours: a lost answer makes no second job.
    job = await api.post("/v1/jobs", body, headers={"Idempotency-Key": secrets.token_hex(16)})
    if not wait:
        return job
    if quiet:
        return await follow_to_the_end(api, job["job_id"], None)
    screen = progress_console()
    screen.print(f"[bold]{job['job_id']}[/bold]")
    try:
        with Progress(screen) as progress:
            return await follow_to_the_end(api, job["job_id"], progress)
    except BaseException:
        screen.print(
            f"The job goes on: `wayline jobs tail {job['job_id']}` follows it, "
            f"`wayline jobs cancel {job['job_id']}` stops it."
        )
        raise


def _show_end(job: dict[str, Any], *, as_json: bool) -> None:
    from wayline.standalone import drawing

    if as_json:
        print_json(job)
    elif "answer" not in job:
        console().print(f"{job['job_id']} {job['status']}: `wayline jobs tail {job['job_id']}` follows it")
    elif job["status"] == "parked":
        console().print(drawing.waits_for(job), soft_wrap=True)
    else:
        console().print(drawing.job_end(job), soft_wrap=True)
    if job["status"] in ("failed", "cancelled"):
        raise typer.Exit(1)
    if job["status"] == "parked":
        raise typer.Exit(WAITS)


@app.command("list")
def list_jobs(
    status: Annotated[str | None, typer.Option(help="queued, running, parked, completed, failed or cancelled")] = None,
    agent: Annotated[str | None, typer.Option()] = None,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 20,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: AsJson = False,
) -> None:
    """The newest jobs."""
    from wayline.standalone.drawing import jobs_table

    answer(
        lambda api: api.get("/v1/jobs", status=status, agent=agent, limit=limit, cursor=cursor),
        as_json=as_json,
        draw=jobs_table,
    )


@app.command()
def show(job: JobId, as_json: AsJson = False) -> None:
    """Everything about one job."""
    from wayline.standalone.drawing import job_details

    answer(lambda api: api.get(f"/v1/jobs/{job}"), as_json=as_json, draw=job_details)


@app.command()
def tail(
    job: JobId,
    after: Annotated[int, typer.Option(min=0, help="Only events past this number.")] = 0,
    as_json: AsJson = False,
) -> None:
    """A job's events, from the first to its end; with --json one a line."""
    import json
    from contextlib import aclosing

    from wayline.standalone.following import line

    screen = console()

    async def work(api: Api) -> None:
        # Closed also where the reader of a pipe is gone.
        async with aclosing(api.events(job, after)) as events:
            async for event in events:
                if as_json:
                    print(json.dumps(event, ensure_ascii=False), flush=True)
                elif event["type"] != "delta":
                    said = line(event)
                    screen.print(f"{event['seq']:>5}  {event['at'][:19]}  {event['type']}", soft_wrap=True)
                    if said is not None:
                        screen.print(said, soft_wrap=True, style="dim")

    conversation(work, as_json=as_json)


@app.command()
def cancel(
    job: JobId, reason: Annotated[str, typer.Option(help="Kept in the job's log.")] = "", as_json: AsJson = False
) -> None:
    """Ask a job to stop."""
    answer(
        lambda api: api.post(f"/v1/jobs/{job}/cancel", {"reason": reason}),
        as_json=as_json,
        draw=lambda said: f"{said['job_id']}: asked to stop; `wayline jobs tail {job}` shows when it has",
    )


@app.command("raise")
def raise_budget(
    job: JobId,
    budget: Annotated[str, typer.Argument(metavar="USD", help="What it may spend from now on.")],
    as_json: AsJson = False,
) -> None:
    """Change what a job may spend; one that waits at its cap goes on."""
    answer(
        lambda api: api.post(f"/v1/jobs/{job}/budget", {"budget_usd": budget}),
        as_json=as_json,
        draw=lambda said: f"{said['job_id']}: it may spend ${budget}; `wayline jobs tail {job}` shows how it goes on",
    )


@app.command("answer")
def answer_decision(
    job: JobId,
    decision: Annotated[str, typer.Argument(help="What the job waits for; `wayline jobs show` names it.")],
    outcome: Annotated[str, typer.Argument(help="succeeded, failed or retry")],
    content: Annotated[str, typer.Option(help="What the tool would have returned, where it succeeded.")] = "",
    as_json: AsJson = False,
) -> None:
    """Tell a waiting job what became of a tool call whose outcome nobody knew."""
    answer(
        lambda api: api.post(f"/v1/jobs/{job}/answers/{decision}", {"outcome": outcome, "content": content}),
        as_json=as_json,
        draw=lambda said: f"{said['job_id']}: the answer is stored, the job goes on",
    )


def trace(job: JobId, as_json: AsJson = False) -> None:
    """A job's trace: what ran where, how long, how many tokens, what it cost."""
    from wayline.standalone.drawing import trace_tree

    answer(lambda api: api.get(f"/v1/jobs/{job}/trace"), as_json=as_json, draw=trace_tree)
