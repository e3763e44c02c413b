"""The commands `wayline jobs bulk` and `wayline jobs actions`: one action on many jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wayline.standalone.commands.arguments import past_moment
from wayline.standalone.commands.jobs import (
    Agents,
    Causes,
    ErrorCode,
    Fingerprint,
    Model,
    Session,
    Since,
    Statuses,
    Tags,
    Tool,
    Until,
    User,
    Words,
)
from wayline.standalone.commands.output import AsJson, answer

if TYPE_CHECKING:
    from wayline.client import Client

LOOK_EVERY_S = 1.0

Labels = Annotated[list[str] | None, typer.Option(metavar="KEY:VALUE", help="Of a tag. Can be repeated.")]


def bulk(
    *,
    action: Annotated[Literal["cancel", "raise", "fork", "tag"], typer.Argument(help="What is done to each job.")],
    jobs: Annotated[list[str] | None, typer.Argument(metavar="[JOB]…", help="These; otherwise all that match.")] = None,
    q: Words = None,
    status: Statuses = None,
    agent: Agents = None,
    model: Model = None,
    tool: Tool = None,
    tag: Tags = None,
    waiting_for: Causes = None,
    session: Session = None,
    user: User = None,
    error: ErrorCode = None,
    fingerprint: Fingerprint = None,
    since: Since = None,
    until: Until = None,
    usd: Annotated[str | None, typer.Option(metavar="USD", help="What each may spend: of a raise, or a fork.")] = None,
    with_model: Annotated[str | None, typer.Option(help="Of a fork: the provider/model that goes on.")] = None,
    add: Labels = None,
    remove: Labels = None,
    reason: Annotated[str, typer.Option(help="Of a cancel: kept in each job's log.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="The most jobs that it is done to.")] = 1_000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would become of them; do nothing.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is done.")] = True,
    as_json: AsJson = False,
) -> None:
    """Do one thing to many jobs: to those that are named, or to all that meet every condition."""
    from wayline.standalone.terminal.action_views import action_progress

    wanted: dict[str, Any] = {
        **{"q": q, "status": status, "agent": agent, "model": model, "tool": tool, "tag": tag},
        **{"waiting_for": waiting_for, "session_id": session, "user_id": user, "error_code": error},
        **{"fingerprint": fingerprint, "since": past_moment(since, "--since"), "until": past_moment(until, "--until")},
    }
    conditions = {name: value for name, value in wanted.items() if value}
    if not jobs and not conditions:
        raise typer.BadParameter("name jobs, or give a condition: without one all jobs would be meant")
    meant: dict[str, Any] = {"job_ids": jobs} if jobs else {"filter": conditions}
    if jobs and conditions:
        raise typer.BadParameter("give either jobs or conditions")
    more = {"budget_usd": usd, "model": with_model, "add_tags": add, "remove_tags": remove}
    body = {"action": action, **meant, "limit": limit, "reason": reason, "dry_run": dry_run}
    body |= {name: value for name, value in more.items() if value}

    async def work(client: Client) -> Any:
        begun = await client.post("/v1/jobs/actions", body)
        return await _done(client, begun) if wait and not dry_run else begun

    answer(work, as_json=as_json, draw=action_progress)


async def _done(client: Client, action: dict[str, Any]) -> dict[str, Any]:
    import asyncio

    while action["state"] == "running":
        await asyncio.sleep(LOOK_EVERY_S)
        action = await client.get(f"/v1/jobs/actions/{action['action_id']}")
    return action


def actions(
    action: Annotated[str | None, typer.Argument(metavar="[ACTION]", help="Show this one alone.")] = None,
    stop: Annotated[bool, typer.Option("--stop", help="Do it to no further job.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what was done to many jobs at once, by whom, and how far it is."""
    from wayline.standalone.terminal.action_views import action_progress, actions_table

    if action is None:
        if stop:
            raise typer.BadParameter("name the action to stop")
        answer(lambda client: client.get("/v1/jobs/actions"), as_json=as_json, draw=actions_table)
    elif stop:
        answer(lambda client: client.post(f"/v1/jobs/actions/{action}/stop"), as_json=as_json, draw=action_progress)
    else:
        answer(lambda client: client.get(f"/v1/jobs/actions/{action}"), as_json=as_json, draw=action_progress)
