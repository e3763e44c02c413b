"""`wayline run`: submit a job with any of its options, and show it as it happens."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wayline.standalone.commands.arguments import INPUT, fail, finite, read_text
from wayline.standalone.commands.console_links import link_or_none
from wayline.standalone.commands.output import AsJson, answer, console, conversation, print_json, progress_console

if TYPE_CHECKING:
    from wayline.client import Client

WAITS = 3
"""The exit code of `run` when the job waits for a person; 2 is a wrong command line."""


Task = Annotated[str, typer.Argument(help="What to do; - reads it from the input.")]
Agent = Annotated[str, typer.Option(help="Which agent does it.")]
Files = Annotated[
    list[Path] | None,
    typer.Option(
        "--file",
        exists=True,
        dir_okay=False,
        readable=True,
        metavar="FILE",
        help="An image, PDF, text or Office file to give it; kept as a document. Can be repeated.",
    ),
]
SessionId = Annotated[str | None, typer.Option("--session", help="The conversation it belongs to.")]
Continue = Annotated[bool, typer.Option("--continue", help="In the session that the agent and the user had last.")]
WhenBusy = Annotated[
    Literal["wait", "refuse", "interrupt", "steer"] | None,
    typer.Option(help="While an earlier job of the session runs: wait for it, be refused, cancel it, or steer it."),
]
UserId = Annotated[str | None, typer.Option("--user", help="For whom it is: costs and budgets tell.")]
JobId = Annotated[str | None, typer.Option("--id", help="Your own id; the same one is the same job.")]
Model = Annotated[str | None, typer.Option(help="provider/model, instead of the router's choice.")]
TaskType = Annotated[str | None, typer.Option(help="What kind of work it is, for instance contract_review.")]
Style = Annotated[str | None, typer.Option(help="How to answer, for instance 'in one sentence'.")]
AgentStyle = Annotated[
    Literal["tool_first", "balanced", "direct"] | None, typer.Option(help="When to use tools, instead of its agent's.")
]
Tools = Annotated[
    list[str] | None,
    typer.Option("--tool", metavar="TOOL", help="Of its agent's tools only this one or prefix*. Can be repeated."),
]
NoTools = Annotated[bool, typer.Option("--no-tools", help="None of its agent's tools.")]
Switch = Annotated[bool, typer.Option(help="Whether it may use such tools, where its agent may.")]
ShowReasoning = Annotated[
    bool | None, typer.Option("--show-reasoning/--hide-reasoning", help="Show its models' thinking in its events.")
]
OutputSchema = Annotated[
    Path | None,
    typer.Option(
        exists=True, dir_okay=False, readable=True, metavar="FILE", help="A JSON Schema: the answer is JSON that fits."
    ),
]
ReasoningEffort = Annotated[
    Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None,
    typer.Option(help="How hard a reasoning model thinks."),
]
Temperature = Annotated[float | None, typer.Option(min=0, max=2, help="Of models that take one.")]
MaxSteps = Annotated[int | None, typer.Option(help="At most so many steps.")]
MaxOutputTokens = Annotated[int | None, typer.Option(help="At most so many tokens an answer.")]
MaxSeconds = Annotated[float | None, typer.Option(callback=finite, help="At most so long.")]
ProviderPatience = Annotated[
    float | None,
    typer.Option(
        "--provider-patience", metavar="SECONDS", min=0, help="How long it waits, parked, for a provider that is away."
    ),
]
BudgetUsd = Annotated[str | None, typer.Option("--budget", metavar="USD", help="At most so many dollars.")]
AtCap = Annotated[
    Literal["partial", "park"] | None,
    typer.Option(help="Where the budget ends: answer with what there is, or wait until it is raised."),
]
RequiredTools = Annotated[
    list[str] | None,
    typer.Option("--require-tool", metavar="TOOL", help="Do not begin without it. Can be repeated."),
]
Lane = Annotated[Literal["interactive", "batch"] | None, typer.Option(help="In which queue it waits.")]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="KEY:VALUE", help="A label to find it by. Can be repeated.")
]
ClientTools = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        readable=True,
        metavar="FILE",
        help="Tools that you run yourself, a JSON list; the job waits for what they return (`wayline jobs result`).",
    ),
]
InOrder = Annotated[bool, typer.Option("--tools-in-order", help="Run the calls of a step one after another.")]
ToolResultsWithin = Annotated[
    float | None,
    typer.Option("--tool-results-within", metavar="SECONDS", min=0, help="How long it waits for that."),
]
Webhook = Annotated[
    str | None,
    typer.Option(metavar="URL|NAME", help="Where its end is told: an address, or the name of a webhook."),
]
Label = Annotated[
    str | None, typer.Option("--label", help="Of the agent's version that answers, for instance candidate.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say its route and its predicted cost.")]
Wait = Annotated[bool, typer.Option(help="Follow it to its end, or only submit it.")]


def run(
    task: Task,
    *,
    agent: Agent = "assistant",
    file: Files = None,
    session_id: SessionId = None,
    continues: Continue = False,
    when_busy: WhenBusy = None,
    user_id: UserId = None,
    job_id: JobId = None,
    model: Model = None,
    task_type: TaskType = None,
    style: Style = None,
    agent_style: AgentStyle = None,
    tools: Tools = None,
    no_tools: NoTools = False,
    web_search: Switch = True,
    memory: Switch = True,
    images: Switch = True,
    show_reasoning: ShowReasoning = None,
    output_schema: OutputSchema = None,
    effort: ReasoningEffort = None,
    temperature: Temperature = None,
    max_steps: MaxSteps = None,
    max_output_tokens: MaxOutputTokens = None,
    max_seconds: MaxSeconds = None,
    provider_patience_s: ProviderPatience = None,
    budget_usd: BudgetUsd = None,
    at_cap: AtCap = None,
    required_tools: RequiredTools = None,
    lane: Lane = None,
    tags: Tags = None,
    client_tools: ClientTools = None,
    tool_results_within_s: ToolResultsWithin = None,
    tools_in_order: InOrder = False,
    webhook: Webhook = None,
    agent_label: Label = None,
    dry_run: DryRun = False,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Run a job and show it as it happens. Exit code 1: it failed; 3: it waits for a person."""
    options = _options(dict(locals()))
    if continues:
        session_id = _last_session(session_id, agent, user_id, as_json=as_json)
    body = {"agent": agent, "input": _text(task), "session_id": session_id, "user_id": user_id, "job_id": job_id}
    if dry_run:
        _plan({**body, "options": {**options, "dry_run": True}}, file or [], as_json=as_json)
    else:
        _run({**body, "options": options}, file or [], wait=wait, as_json=as_json)


PLAIN_OPTIONS = (
    *("model", "task_type", "style", "agent_style", "show_reasoning", "effort", "temperature", "max_steps"),
    *("max_output_tokens", "max_seconds", "provider_patience_s", "budget_usd", "at_cap", "lane"),
    *("tool_results_within_s", "when_busy", "agent_label"),
)
"""A job's options that are as the command line has them, under their own names."""


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the job's options of what the command line has by the names of `run`; what was not set is left out."""
    schema, tools, webhook = given["output_schema"], given["client_tools"], given["webhook"]
    options = {
        **{name: given[name] for name in PLAIN_OPTIONS},
        **{name: None if given[name] else False for name in ("web_search", "memory", "images")},
        **{name: given[name] or None for name in ("required_tools", "tags", "tools_in_order")},
        "tools": [] if given["no_tools"] else given["tools"] or None,
        "output_schema": None if schema is None else _json_of(schema, dict, "object, which a schema is"),
        "client_tools": None if tools is None else _json_of(tools, list, "list, which tools are"),
        "webhook": None if webhook is None else {"url" if "://" in webhook else "name": webhook},
    }
    return {name: value for name, value in options.items() if value is not None}


def _text(task: str) -> str:
    return read_text(INPUT) if task == INPUT else task


def _json_of(file: Path, kind: type[Any], what: str) -> Any:
    """Return the JSON value of a kind in a file."""
    from pydantic_core import from_json

    try:
        value = from_json(file.read_bytes())
    except ValueError as error:
        fail(f"{file} holds no JSON: {error}")
    if not isinstance(value, kind):
        fail(f"{file} holds no JSON {what}")
    return value


def _last_session(given: str | None, agent: str, user_id: str | None, *, as_json: bool) -> str:
    """Return the session that `--continue` means."""
    if given is not None:
        fail("--session names a session and --continue another: leave one out")
    found = conversation(lambda client: client.newest_session(agent=agent, user_id=user_id), as_json=as_json)
    if found is None:
        of_user = f" by user {user_id!r}" if user_id else ""
        fail(f"there is no session with agent {agent!r}{of_user} yet: begin one with --session ID")
    return found


def _plan(body: dict[str, Any], files: list[Path], *, as_json: bool) -> None:
    """Print the route and the predicted cost of a job. Exit code 1: it would be refused."""
    from wayline.standalone.terminal.job_views import planned

    async def work(client: Client) -> dict[str, Any]:
        return await client.post("/v1/jobs", await _with_files(client, body, files))

    plan = answer(work, as_json=as_json, draw=planned)
    if plan["refusal"]:
        raise typer.Exit(1)


def _run(body: dict[str, Any], files: list[Path], *, wait: bool, as_json: bool) -> None:
    """Submit a job, follow it to its end and print that."""

    async def work(client: Client) -> dict[str, Any]:
        for warning in await unknown_tools(client, body["options"].get("tools") or ()):
            progress_console().print(warning, markup=False)
        job = await client.submit(await _with_files(client, body, files))
        if not wait:
            return job
        if as_json:
            return await client.follow(job["job_id"])
        return await _show(client, job["job_id"])

    _print_end(conversation(work, as_json=as_json), as_json=as_json)


async def unknown_tools(client: Client, patterns: Iterable[str]) -> list[str]:
    """Return a warning for each `--tool` that names no tool now: the job goes on without it."""
    wanted = list(patterns)
    if not wanted:
        return []
    from wayline.contracts.nearest import nearest_names

    listed = await client.whole("/v1/tools", "tools")
    names = [tool["name"] for tool in listed["tools"]]
    unknown = [pattern for pattern in wanted if not any(fnmatchcase(name, pattern) for name in names)]
    meant = {pattern: next(iter(nearest_names(pattern.rstrip("*"), names)), None) for pattern in unknown}
    return [
        f"there is no tool {pattern!r} now{f'; the nearest is {near}' if near else ''} (`wayline tools` lists them)"
        for pattern, near in meant.items()
    ]


async def _with_files(client: Client, body: dict[str, Any], files: list[Path]) -> dict[str, Any]:
    """Return the job with its files uploaded and put before its text."""
    if not files:
        return body
    from wayline.client import upload_parts

    return {**body, "input": [*await upload_parts(client, files), {"type": "text", "text": body["input"]}]}


async def _show(client: Client, job_id: str) -> dict[str, Any]:
    """Follow a job on the terminal, and return it as it is at its end."""
    from wayline.standalone.terminal.job_progress import JobProgress

    screen = progress_console()
    screen.print(f"[bold]{job_id}[/bold]")
    if link := await link_or_none(client, job_id):
        screen.print(link, style="dim", markup=False, soft_wrap=True)
    try:
        with JobProgress(screen) as progress:
            return await client.follow(job_id, on_event=progress.show, progress=True)
    except BaseException:
        screen.print(
            f"The job goes on: `wayline jobs tail {job_id}` follows it, `wayline jobs cancel {job_id}` stops it."
        )
        raise


def _print_end(job: dict[str, Any], *, as_json: bool) -> None:
    from wayline.standalone.terminal import job_views

    if as_json:
        print_json(job)
    elif "answer" not in job:
        console().print(f"{job['job_id']} {job['status']}: `wayline jobs tail {job['job_id']}` follows it")
    elif job["status"] == "parked":
        console().print(job_views.waits_for(job), soft_wrap=True)
    else:
        console().print(job_views.job_end(job), soft_wrap=True)
    if job["status"] in ("failed", "cancelled"):
        raise typer.Exit(1)
    if job["status"] == "parked":
        raise typer.Exit(WAITS)
