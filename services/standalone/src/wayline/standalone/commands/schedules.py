"""The commands `wayline schedules`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import typer

from wayline.standalone.commands.arguments import INPUT, fail, read_text
from wayline.standalone.commands.output import AsJson, answer
from wayline.standalone.commands.times import future_time

app = typer.Typer(help="Jobs that are submitted by themselves.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="What the schedule is called.")]


@app.command("list")
def list_schedules(
    limit: Annotated[int, typer.Option(min=1, max=200)] = 50,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the schedules: when each fires next, and what became of its last firing."""
    from wayline.standalone.terminal.schedule_views import schedules_table

    answer(
        lambda client: client.get("/v1/schedules", limit=limit, cursor=cursor), as_json=as_json, draw=schedules_table
    )


@app.command()
def show(
    name: Name,
    limit: Annotated[int, typer.Option(min=0, max=200, help="At most so many firings.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show a schedule with its next moments and its last firings, newest first."""
    from wayline.standalone.terminal.schedule_views import schedule_details

    answer(lambda client: client.get(f"/v1/schedules/{name}", limit=limit), as_json=as_json, draw=schedule_details)


@app.command()
def create(
    name: Name,
    task: Annotated[str, typer.Argument(help="What to do at each firing; - reads it from the input.")],
    *,
    cron: Annotated[
        str | None, typer.Option(help="Minute, hour, day of month, month, day of week: '0 7 * * MON-FRI'.")
    ] = None,
    at: Annotated[str | None, typer.Option(help="Once: a date with its time, or from now such as 30m or 7d.")] = None,
    timezone: Annotated[str, typer.Option(help="By whose clock cron is meant, for instance Europe/Berlin.")] = "UTC",
    agent: Annotated[str, typer.Option(help="Which agent does it.")] = "assistant",
    session: Annotated[str | None, typer.Option(help="The conversation that its jobs belong to.")] = None,
    user: Annotated[str | None, typer.Option(help="For whom it is: costs and budgets tell.")] = None,
    model: Annotated[str | None, typer.Option(help="provider/model, instead of the router's choice.")] = None,
    budget: Annotated[str | None, typer.Option(metavar="USD", help="At most so many dollars a job.")] = None,
    missed: Annotated[
        Literal["fire_once", "skip"], typer.Option(help="After an outage: fire once for the newest moment, or not.")
    ] = "fire_once",
    overlap: Annotated[
        Literal["allow", "skip"], typer.Option(help="Whether to fire while the job before has not ended.")
    ] = "allow",
    disabled: Annotated[bool, typer.Option("--disabled", help="Keep it; fire nothing yet.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Change the one of this name, where there is one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a schedule: by --cron again and again, or once --at a moment."""
    from wayline.standalone.terminal.schedule_views import schedule_details

    options = {"model": model, "budget_usd": budget}
    job = {"agent": agent, "input": read_text(INPUT) if task == INPUT else task, "session_id": session, "user_id": user}
    body = {
        "cron": cron,
        "timezone": timezone,
        "at": None if at is None else _moment(at),
        "job": {**job, "options": {field: value for field, value in options.items() if value is not None}},
        "enabled": not disabled,
        "missed": missed,
        "overlap": overlap,
    }

    async def save(client: Any) -> Any:
        path = f"/v1/schedules/{name}"
        return await (client.put(path, body) if replace else client.post(path, body))

    answer(save, as_json=as_json, draw=schedule_details)


def _moment(text: str) -> str:
    try:
        return future_time(text, datetime.now(UTC)).isoformat()
    except ValueError as error:
        fail(f"--at: {error}")


@app.command()
def enable(name: Name, as_json: AsJson = False) -> None:
    """Enable a schedule: it plans from now on."""
    answer(
        lambda client: client.post(f"/v1/schedules/{name}/enable"),
        as_json=as_json,
        draw=lambda schedule: f"{name} is enabled; it fires next at {schedule['next_at']}",
    )


@app.command()
def disable(name: Name, as_json: AsJson = False) -> None:
    """Disable a schedule: it is kept and fires no more."""
    answer(
        lambda client: client.post(f"/v1/schedules/{name}/disable"),
        as_json=as_json,
        draw=lambda _: f"{name} is disabled",
    )


@app.command()
def run(name: Name, as_json: AsJson = False) -> None:
    """Submit a schedule's job now; what it plans stays."""
    answer(
        lambda client: client.run_schedule(name),
        as_json=as_json,
        draw=lambda accepted: f"{accepted['job_id']}: follow it with `wayline jobs tail {accepted['job_id']}`",
    )


@app.command()
def delete(name: Name, as_json: AsJson = False) -> None:
    """Delete a schedule: it fires no more. Its jobs go on."""
    answer(
        lambda client: client.delete(f"/v1/schedules/{name}"),
        as_json=as_json,
        draw=lambda _: f"{name} is deleted",
    )
