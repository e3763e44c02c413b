"""The commands `wayline jobs` and `wayline trace`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wayline.standalone.commands.arguments import INPUT, fail, past_moment, read_text
from wayline.standalone.commands.output import AsJson, answer, console, conversation, speaks_utf8, write_file

if TYPE_CHECKING:
    from wayline.client import Client

app = typer.Typer(help="Look at jobs and steer them.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")]


Words = Annotated[
    str | None, typer.Option("-q", "--words", help="Words of its input, answer or error; or how its id begins.")
]
Statuses = Annotated[
    list[str] | None, typer.Option(help="queued, running, parked, completed, failed or cancelled. Can be repeated.")
]
Agents = Annotated[list[str] | None, typer.Option(help="Can be repeated.")]
Model = Annotated[str | None, typer.Option(help="A model, or provider/model.")]
Tool = Annotated[str | None, typer.Option(help="Only those that called this tool.")]
Tags = Annotated[
    list[str] | None, typer.Option(metavar="KEY:VALUE", help="Only those with this label. Can be repeated.")
]
Causes = Annotated[list[str] | None, typer.Option(help="Only parked ones: approval, budget, … Can be repeated.")]
Schedule = Annotated[str | None, typer.Option(help="Only those that this schedule submitted.")]
Session = Annotated[str | None, typer.Option(help="Only those of this session.")]
User = Annotated[str | None, typer.Option(help="Only those of this user.")]
ParentJob = Annotated[
    str | None, typer.Option(metavar="JOB", help="Only those that this job started; none: that no job started.")
]
ErrorCode = Annotated[str | None, typer.Option(metavar="CODE", help="Only those that failed with this code.")]
Fingerprint = Annotated[
    str | None, typer.Option(help="Only those that failed of this cause: `wayline dead-letters groups`.")
]
Version = Annotated[int | None, typer.Option(min=1, help="Only those of this version of their agent.")]
Label = Annotated[str | None, typer.Option(help="Only those whose version was chosen by this label.")]
Since = Annotated[str | None, typer.Option(metavar="WHEN", help="Only those accepted since: 7d, 12h, or a date (UTC).")]
Until = Annotated[str | None, typer.Option(metavar="WHEN", help="Only those accepted before, alike.")]
Dollars = Annotated[str | None, typer.Option(metavar="USD")]
Seconds = Annotated[float | None, typer.Option(min=0)]
Judged = Annotated[
    Literal["up", "down", "none", "any"] | None,
    typer.Option(help="Only those judged well, badly, not at all, or at all."),
]
Order = Annotated[Literal["newest", "oldest", "dearest", "slowest"], typer.Option(help="Which come first.")]
Export = Annotated[
    Literal["ndjson", "csv"] | None,
    typer.Option(help="Write all of them, the newest first, with whole answers: a JSON object a line, or a table."),
]
Facets = Annotated[bool, typer.Option("--facets", help="Count them by status, agent and model, too.")]


@app.command("list")
def list_jobs(
    *,
    q: Words = None,
    status: Statuses = None,
    agent: Agents = None,
    model: Model = None,
    tool: Tool = None,
    tag: Tags = None,
    waiting_for: Causes = None,
    schedule: Schedule = None,
    session: Session = None,
    user: User = None,
    parent: ParentJob = None,
    error: ErrorCode = None,
    fingerprint: Fingerprint = None,
    version: Version = None,
    label: Label = None,
    since: Since = None,
    until: Until = None,
    cost_min: Dollars = None,
    cost_max: Dollars = None,
    seconds_min: Seconds = None,
    seconds_max: Seconds = None,
    feedback: Judged = None,
    sort: Order = "newest",
    facets: Facets = False,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 20,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    export: Export = None,
    as_json: AsJson = False,
) -> None:
    """List the jobs that meet all conditions, or write all of them with --export."""
    wanted = _wanted(dict(locals()))
    if export is not None:
        unwanted = ("sort", "facets")
        write_file(
            "/v1/jobs/export", {**{name: wanted[name] for name in wanted if name not in unwanted}, "format": export}
        )
        return
    from wayline.standalone.terminal.job_views import jobs_table

    answer(
        lambda client: client.get("/v1/jobs", **wanted, limit=limit, cursor=cursor), as_json=as_json, draw=jobs_table
    )


FILTERS = (
    *("q", "status", "agent", "model", "tool", "tag", "waiting_for", "schedule", "parent", "fingerprint", "version"),
    *("label", "cost_min", "cost_max", "seconds_min", "seconds_max", "feedback", "sort"),
)
"""What the gateway calls as `list` does."""


def _wanted(given: dict[str, Any]) -> dict[str, Any]:
    """Return the gateway's parameters of what the command line has by the names of `list`."""
    return {
        **{name: given[name] for name in FILTERS},
        "session_id": given["session"],
        "user_id": given["user"],
        "error_code": given["error"],
        "since": past_moment(given["since"], "--since"),
        "until": past_moment(given["until"], "--until"),
        "facets": given["facets"] or None,
    }


@app.command()
def show(job: JobId, as_json: AsJson = False) -> None:
    """Show everything about one job, and the jobs that it started."""
    from wayline.client import ApiError
    from wayline.standalone.terminal.family_views import job_with_family, read_family

    async def steps(client: Client) -> Any:
        try:
            return (await client.get(f"/v1/jobs/{job}/steps"))["steps"]
        except ApiError:
            # The job is known also where its trace is not, or not yet.
            return []

    async def work(client: Client) -> Any:
        found = await client.job(job)
        return found if as_json else (found, await steps(client), await read_family(client, found))

    answer(work, as_json=as_json, draw=lambda found: job_with_family(*found))


@app.command()
def tail(
    job: JobId,
    after: Annotated[int, typer.Option(min=0, help="Only events past this number.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Print a job's events, from the first to its end; with --json one a line."""
    import json
    from contextlib import aclosing

    from wayline.standalone.terminal.job_progress import EventLines

    screen, lines = console(), EventLines()

    async def work(client: Client) -> None:
        # Closed also when the reader of a pipe is gone.
        async with aclosing(client.events(job, after)) as events:
            async for event in events:
                if as_json:
                    print(json.dumps(event, ensure_ascii=not speaks_utf8()), flush=True)
                elif event["type"] != "delta":
                    line = lines.line(event)
                    screen.print(f"{event['seq']:>5}  {event['at'][:19]}  {event['type']}", soft_wrap=True)
                    if line is not None:
                        screen.print(line, soft_wrap=True, style="dim")

    conversation(work, as_json=as_json)


@app.command()
def watch(
    types: Annotated[
        str | None, typer.Option(help="Only these, joined by commas: job.completed, or job.* for a kind.")
    ] = None,
    agent: Agents = None,
    as_json: AsJson = False,
) -> None:
    """Print what happens to all jobs, from now on until Ctrl-C; with --json one a line."""
    import json
    from contextlib import aclosing

    from wayline.standalone.terminal.job_progress import tenant_event_line

    screen = console()

    async def work(client: Client) -> None:
        async with aclosing(client.tenant_events(types=types, agent=agent)) as events:
            async for event in events:
                if as_json:
                    print(json.dumps(event, ensure_ascii=not speaks_utf8()), flush=True)
                else:
                    screen.print(tenant_event_line(event), soft_wrap=True)

    conversation(work, as_json=as_json)


@app.command()
def cancel(
    job: JobId, reason: Annotated[str, typer.Option(help="Kept in the job's log.")] = "", as_json: AsJson = False
) -> None:
    """Ask a job to stop."""
    answer(
        lambda client: client.post(f"/v1/jobs/{job}/cancel", {"reason": reason}),
        as_json=as_json,
        draw=lambda reply: f"{reply['job_id']}: asked to stop; `wayline jobs tail {job}` shows when it has",
    )


@app.command("raise")
def raise_budget(
    job: JobId,
    budget: Annotated[str, typer.Argument(metavar="USD", help="What it may spend from now on.")],
    as_json: AsJson = False,
) -> None:
    """Change what a job may spend; one that waits at its cap goes on."""
    answer(
        lambda client: client.post(f"/v1/jobs/{job}/budget", {"budget_usd": budget}),
        as_json=as_json,
        draw=lambda reply: f"{reply['job_id']}: it may spend ${budget}; `wayline jobs tail {job}` shows how it goes on",
    )


@app.command("answer")
def answer_decision(
    job: JobId,
    decision: Annotated[str, typer.Argument(help="What the job waits for; `wayline jobs show` names it.")],
    outcome: Annotated[str, typer.Argument(help="succeeded, failed or retry")],
    content: Annotated[str, typer.Option(help="What the tool would have returned, where it succeeded.")] = "",
    as_json: AsJson = False,
) -> None:
    """Give a waiting job the outcome of a tool call, which it could not learn itself."""
    answer(
        lambda client: client.post(f"/v1/jobs/{job}/answers/{decision}", {"outcome": outcome, "content": content}),
        as_json=as_json,
        draw=lambda reply: f"{reply['job_id']}: the answer is stored, the job goes on",
    )


ShownHash = Annotated[
    str | None, typer.Option("--hash", help="What you were shown: another question is not answered by this.")
]


@app.command("result")
def give_result(
    job: JobId,
    key: Annotated[str, typer.Argument(help="The call's key; `wayline jobs show` names it.")],
    content: Annotated[str, typer.Argument(help="What the tool returned; - reads it from the input.")],
    failed: Annotated[bool, typer.Option("--failed", help="The call has failed; the text says why.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give a job what a tool returned that its caller runs itself (`wayline run --client-tools`)."""
    result = {"key": key, "content": read_text(INPUT) if content == INPUT else content, "failed": failed}
    answer(
        lambda client: client.give_results(job, result),
        as_json=as_json,
        draw=lambda stored: f"{stored['job_id']}: the result is stored; `wayline jobs tail {job}` shows how it goes on",
    )


@app.command()
def approve(
    job: JobId,
    approval: Annotated[str, typer.Argument(help="The call's approval; `wayline approvals` names it.")],
    arguments: Annotated[
        str | None, typer.Option(metavar="JSON", help="Call the tool with these arguments, or answer its server.")
    ] = None,
    shown_hash: ShownHash = None,
    as_json: AsJson = False,
) -> None:
    """Approve a tool call that a job waits to make."""
    import json

    body: dict[str, object] = {"decision": "approve", **({"hash": shown_hash} if shown_hash else {})}
    if arguments is not None:
        try:
            body["arguments"] = json.loads(arguments)
        except ValueError as error:
            raise typer.BadParameter(f"--arguments is not JSON: {error}") from None
    _decide(job, approval, body, as_json=as_json)


@app.command()
def deny(
    job: JobId,
    approval: Annotated[str, typer.Argument(help="The call's approval; `wayline approvals` names it.")],
    reason: Annotated[str, typer.Option(help="What the model reads as the call's result.")] = "",
    as_json: AsJson = False,
) -> None:
    """Deny a tool call that a job waits to make."""
    _decide(job, approval, {"decision": "deny", "reason": reason}, as_json=as_json)


def _decide(job: str, approval: str, body: dict[str, object], *, as_json: bool) -> None:
    answer(
        lambda client: client.decide(job, approval, body),
        as_json=as_json,
        draw=lambda stored: (
            f"{stored['job_id']}: the decision is stored; `wayline jobs tail {job}` shows how it goes on"
        ),
    )


def approvals(
    limit: Annotated[int, typer.Option(min=1, max=200, help="Jobs on a page.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    decided: Annotated[bool, typer.Option("--decided", help="What people decided instead, and who.")] = False,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="With --decided: 7d, 12h, or a date (UTC).")] = None,
    as_json: AsJson = False,
) -> None:
    """List everything that waits for a person's decision, across jobs; or what was decided."""
    from wayline.standalone.terminal.job_views import approvals_table, decided_table

    if since is not None and not decided:
        fail("--since says how far back decisions are looked for: give --decided too")
    past = {"decided": True, "since": past_moment(since, "--since")} if decided else {}
    answer(
        lambda client: client.approvals(limit=limit, cursor=cursor, **past),
        as_json=as_json,
        draw=decided_table if decided else approvals_table,
    )


def trace(job: JobId, as_json: AsJson = False) -> None:
    """Show a job's trace: what ran where, how long, how many tokens, what it cost."""
    from wayline.client import whole_trace
    from wayline.standalone.terminal.job_views import trace_tree

    answer(lambda client: whole_trace(client, job), as_json=as_json, draw=trace_tree)
