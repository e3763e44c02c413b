"""The commands `wayline agents` and `wayline dead-letters`."""

from __future__ import annotations

import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wayline.standalone.commands.arguments import fail, read_json
from wayline.standalone.commands.output import AsJson, answer

if TYPE_CHECKING:
    from wayline.client import Client

agents = typer.Typer(help="Who answers a job, and how.", no_args_is_help=True)
dead_letters = typer.Typer(help="Messages that could not be handled.", no_args_is_help=True)

SHOWN = {"name", "version", "config"}
"""The fields of an agent as `wayline agents show` prints it."""


@agents.command("list")
def list_agents(as_json: AsJson = False) -> None:
    """List the newest version of every agent."""
    from wayline.standalone.terminal.list_views import agents_table

    answer(lambda client: client.whole("/v1/agents", "agents"), as_json=as_json, draw=agents_table)


@agents.command("show")
def show_agent(name: str, as_json: AsJson = False) -> None:
    """Show an agent's whole configuration."""
    answer(lambda client: client.get(f"/v1/agents/{name}"), as_json=as_json, draw=_as_json_text)


@agents.command("latest")
def latest_run(
    name: str,
    user: Annotated[str, typer.Option("--user", help="As its jobs name their user.")],
    as_json: AsJson = False,
) -> None:
    """Show a user's newest run of an agent, and what became of it."""
    from wayline.standalone.terminal.job_views import run_result

    answer(lambda client: client.get(f"/v1/agents/{name}/latest", user_id=user), as_json=as_json, draw=run_result)


@agents.command("check")
def check_agent(
    name: str,
    file: Annotated[str, typer.Argument(help="Its configuration as JSON, as for `wayline agents put`.")],
    as_json: AsJson = False,
) -> None:
    """Say what an agent would be, without saving it: what is wrong, its tokens and models, the cost of a job."""
    from wayline.standalone.terminal.list_views import agent_check

    checked = answer(
        lambda client: client.post(f"/v1/agents/{name}/check", _config_of(read_json(file))),
        as_json=as_json,
        draw=agent_check,
    )
    if checked["problems"]:
        raise typer.Exit(1)


@agents.command("put")
def put_agent(
    name: str,
    file: Annotated[
        str,
        typer.Argument(help="Its configuration as JSON, also as `wayline agents show` prints it; - reads the input."),
    ],
    as_json: AsJson = False,
) -> None:
    """Save an agent; a change is a new version."""
    config = _config_of(read_json(file))
    saved = answer(
        lambda client: client.put(f"/v1/agents/{name}", config),
        as_json=as_json,
        draw=lambda agent: f"{agent['name']} is saved as version {agent['version']}",
    )
    for warning in saved.get("warnings", ()):
        print(f"warning: {warning}", file=sys.stderr)


@agents.command("versions")
def agent_versions(
    name: str,
    version: Annotated[int | None, typer.Option(min=1, help="Show this version's whole configuration.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the versions of an agent: when each was saved, by whom, and what it changed; or show one."""
    from wayline.standalone.terminal.list_views import versions_table

    path = f"/v1/agents/{name}/versions"
    if version is not None:
        answer(lambda client: client.get(f"{path}/{version}"), as_json=as_json, draw=_as_json_text)
    else:
        answer(lambda client: client.whole(path, "versions"), as_json=as_json, draw=versions_table)


@agents.command("label")
def label_version(
    name: str,
    *,
    label: Annotated[str, typer.Argument(help="Such as production or candidate.")],
    version: Annotated[int | None, typer.Option(min=1, help="Which version gets it.")] = None,
    share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Of the jobs that ask for no label, for instance 0.1; 0: none. Left out, the label keeps its share.",
        ),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take it away.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give a version of an agent a label, which jobs ask for with `--label`, or take it away."""
    path = f"/v1/agents/{name}/labels/{label}"
    if remove:
        answer(lambda client: client.delete(path), as_json=as_json, draw=lambda _: f"{name} has no label {label}")
        return
    if version is None:
        fail("--version N says which version gets the label, and --remove takes it away")
    answer(lambda client: _labelled(client, path, version, share), as_json=as_json, draw=lambda one: _label(name, one))


async def _labelled(client: Client, path: str, version: int, share: float | None) -> dict[str, Any]:
    """Give a version a label; without a share the label keeps the one that it has."""
    from wayline.client import ApiError

    if share is not None:
        return await client.put(path, {"version": version, "share": share or None})
    try:
        there = await client.tagged(path)
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return await client.put(path, {"version": version})
    body = {"version": version, "share": there.body["share"]}
    return await client.put(path, body, headers={"If-Match": there.tag} if there.tag else None)


def _label(agent: str, one: dict[str, Any]) -> str:
    part = f", with {one['share']:.0%} of the jobs that ask for none" if one["share"] else ""
    return f"version {one['version']} of {agent} has the label {one['label']}{part}"


@agents.command("remove")
def remove_agent(name: str, as_json: AsJson = False) -> None:
    """Remove an agent: its running jobs go on, new ones are refused."""
    answer(
        lambda client: client.delete(f"/v1/agents/{name}"),
        as_json=as_json,
        draw=lambda _: f"{name} is removed",
    )


@agents.command("restore")
def restore_agent(name: str, as_json: AsJson = False) -> None:
    """Bring an agent back: a bundled one as it was delivered, any other as it was last saved."""
    answer(
        lambda client: client.post(f"/v1/agents/{name}/restore"),
        as_json=as_json,
        draw=lambda agent: f"{agent['name']} is back as version {agent['version']}",
    )


@dead_letters.command("list")
def list_dead_letters(
    limit: Annotated[int, typer.Option(min=1, max=200)] = 20,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    as_json: AsJson = False,
) -> None:
    """List messages that could not be handled, newest first."""
    from wayline.standalone.terminal.list_views import dead_letters_table

    answer(
        lambda client: client.get("/v1/dead-letters", limit=limit, cursor=cursor),
        as_json=as_json,
        draw=dead_letters_table,
    )


@dead_letters.command("show")
def show_dead_letter(
    number: Annotated[int, typer.Argument(help="As `wayline dead-letters list` shows it.")], as_json: AsJson = False
) -> None:
    """Show a dead letter with its headers and its body."""
    answer(lambda client: client.get(f"/v1/dead-letters/{number}"), as_json=as_json, draw=_as_json_text)


@dead_letters.command("dismiss")
def dismiss_dead_letters(
    numbers: Annotated[list[int], typer.Argument(help="As `wayline dead-letters list` shows them.")],
    reason: Annotated[str, typer.Option(help="Why they need nothing more; kept for 30 days.")],
    as_json: AsJson = False,
) -> None:
    """Dismiss dead letters that need no further work: no metric or alert counts them any longer."""
    from wayline.standalone.terminal.list_views import dismissed_table

    async def dismiss(client: Any) -> dict[str, Any]:
        return {
            "dismissed": [
                await client.post(f"/v1/dead-letters/{number}/dismiss", {"reason": reason}) for number in numbers
            ]
        }

    answer(dismiss, as_json=as_json, draw=dismissed_table)


@dead_letters.command("groups")
def list_failure_groups(as_json: AsJson = False) -> None:
    """List failed jobs and dead letters by cause, the most frequent first."""
    from wayline.standalone.terminal.replay_views import failure_groups_table

    answer(lambda client: client.get("/v1/dead-letters/groups"), as_json=as_json, draw=failure_groups_table)


@dead_letters.command("redrive")
def redrive(
    fingerprint: Annotated[str, typer.Option(help="Of the cause, as `wayline dead-letters groups` shows it.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would become of each job; begin nothing.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many go on at most, the newest first.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Let all jobs that failed of one cause go on from their failed step; a second time begins nothing twice."""
    from wayline.standalone.terminal.replay_views import redrive_table

    body = {"fingerprint": fingerprint, "dry_run": dry_run, "limit": limit}
    answer(lambda client: client.post("/v1/dead-letters/redrive", body), as_json=as_json, draw=redrive_table)


@dead_letters.command("redrives")
def list_redrives(limit: Annotated[int, typer.Option(min=1, max=200)] = 20, as_json: AsJson = False) -> None:
    """List who let failed jobs go on, when, of which cause and how many."""
    from wayline.standalone.terminal.replay_views import redrives_table

    answer(lambda client: client.get("/v1/dead-letters/redrives", limit=limit), as_json=as_json, draw=redrives_table)


@dead_letters.command("dismissed")
def list_dismissed_letters(limit: Annotated[int, typer.Option(min=1, max=200)] = 20, as_json: AsJson = False) -> None:
    """List the dead letters that were dismissed in the last 30 days, with the reasons."""
    from wayline.standalone.terminal.list_views import dismissed_table

    answer(lambda client: client.get("/v1/dead-letters/dismissed", limit=limit), as_json=as_json, draw=dismissed_table)


def _config_of(content: Any) -> Any:
    return content["config"] if isinstance(content, dict) and set(content) >= SHOWN else content


def _as_json_text(value: Any) -> Any:
    from rich.json import JSON

    return JSON.from_data(value)
