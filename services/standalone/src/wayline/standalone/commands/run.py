"""`wayline run`: a job with all that it can be asked for, shown as it happens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wayline.standalone.commands.given import INPUT, finite, text_in
from wayline.standalone.commands.output import AsJson, answer, console, conversation, print_json, progress_console

if TYPE_CHECKING:
    from wayline.standalone.client import Api

WAITS = 3
"""The exit code of `run` when the job waits for somebody; 2 is a command that was written wrong."""


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
            metavar="FILE",
            help="An image, PDF or text to give it; kept as a document. Can be repeated.",
        ),
    ] = None,
    session_id: Annotated[str | None, typer.Option("--session", help="The conversation it belongs to.")] = None,
    user_id: Annotated[str | None, typer.Option("--user", help="For whom it is: costs and budgets tell.")] = None,
    job_id: Annotated[str | None, typer.Option("--id", help="Your own id; the same one is the same job.")] = None,
    model: Annotated[str | None, typer.Option(help="provider/model, instead of the router's choice.")] = None,
    task_type: Annotated[
        str | None, typer.Option(help="What kind of work it is, for instance contract_review.")
    ] = None,
    style: Annotated[str | None, typer.Option(help="How to answer, for instance 'in one sentence'.")] = None,
    max_steps: Annotated[int | None, typer.Option(help="At most so many steps.")] = None,
    max_output_tokens: Annotated[int | None, typer.Option(help="At most so many tokens an answer.")] = None,
    max_seconds: Annotated[float | None, typer.Option(callback=finite, help="At most so long.")] = None,
    budget_usd: Annotated[str | None, typer.Option("--budget", metavar="USD", help="At most so many dollars.")] = None,
    at_cap: Annotated[
        Literal["partial", "park"] | None,
        typer.Option(help="Where the budget ends: answer with what there is, or wait until it is raised."),
    ] = None,
    required_tools: Annotated[
        list[str] | None,
        typer.Option("--require-tool", metavar="TOOL", help="Do not begin without it. Can be repeated."),
    ] = None,
    lane: Annotated[Literal["interactive", "batch"] | None, typer.Option(help="In which queue it waits.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say its route and its predicted cost.")] = False,
    wait: Annotated[bool, typer.Option(help="Follow it to its end, or only submit it.")] = True,
    as_json: AsJson = False,
) -> None:
    """Run a job and show it as it happens. Exit code 1: it failed; 3: it waits for somebody."""
    options = {
        "model": model,
        "task_type": task_type,
        "style": style,
        "max_steps": max_steps,
        "max_output_tokens": max_output_tokens,
        "max_seconds": max_seconds,
        "budget_usd": budget_usd,
        "at_cap": at_cap,
        "required_tools": required_tools or None,
        "lane": lane,
    }
    body = {
        "agent": agent,
        "input": text_in(INPUT) if task == INPUT else task,
        "session_id": session_id,
        "user_id": user_id,
        "job_id": job_id,
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
