"""Replays, drawn for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from wayline.standalone.terminal.money_views import usd
from wayline.standalone.terminal.table import table

_NO_HISTORY = "what its session said before it is not at hand"


def replay_lines(replay: dict[str, Any]) -> RenderableType:
    """Draw whether a replay was identical, else where it diverged, and what the job costs now."""
    lines: list[Text] = []
    at = replay["divergence"]
    if at is None:
        lines.append(
            Text(f"{replay['job_id']}: identical, {replay['steps']} steps, {replay['events']} events", style="green")
        )
    else:
        where = f"step {at['step']}, event {at['seq']} ({at['event']})"
        lines.append(Text(f"{replay['job_id']}: diverges at {where}: another {at['what']}", style="red"))
        lines += [Text(f"  recorded: {at['recorded']}"), Text(f"  now:      {at['now']}")]
    if not replay["history_compared"]:
        lines.append(Text(f"  {_NO_HISTORY}: messages were not compared", style="yellow"))
    cost = f"{usd(replay['recorded_usd'])} then, {usd(replay['now_usd'])} now"
    return Group(*lines, Text(cost + _difference(replay["difference_usd"])))


def _difference(amount: str | None) -> str:
    if amount is None or not float(amount):
        return ""
    return f": {'-' if float(amount) < 0 else '+'}{usd(amount.lstrip('-'))}"


def replays_table(replays: list[dict[str, Any]]) -> RenderableType:
    """Draw one line for each file."""
    rows = ([escape(one["file"]), *_outcome(one)] for one in replays)
    return table(("file", "outcome", "where", "recorded", "now"), rows, nothing="no files")


def _outcome(one: dict[str, Any]) -> list[str]:
    if "error" in one:
        return ["[red]cannot be replayed[/red]", "", escape(one["error"]), ""]
    at = one["divergence"]
    if at is None:
        return ["[green]identical[/green]", f"{one['steps']} steps", "" if one["history_compared"] else _NO_HISTORY, ""]
    return ["[red]diverges[/red]", f"step {at['step']}: {at['what']}", escape(at["recorded"]), escape(at["now"])]


def failure_groups_table(groups: dict[str, Any]) -> RenderableType:
    """Draw one line for each cause of a failure."""
    rows = (
        [one["fingerprint"], str(one["jobs"]), str(one["letters"]), one["code"], escape(one["message"])]
        for one in groups["groups"]
    )
    return table(("fingerprint", "jobs", "letters", "code", "message"), rows, nothing="nothing failed")


def redrive_table(redrive: dict[str, Any]) -> RenderableType:
    """Draw one line for each failed job, and whether there are more."""
    would = "would be " if redrive["dry_run"] else ""
    rows = (
        [one["job_id"], would + one["outcome"], one["fork_id"] or "", escape(one["reason"])] for one in redrive["jobs"]
    )
    parts: list[RenderableType] = [
        table(("failed job", "outcome", "goes on as", "why"), rows, nothing="no failed jobs")
    ]
    if redrive["letters"]:
        letters = (
            [str(one["sequence"]), would + one["outcome"], one["job_id"] or "", escape(one["reason"])]
            for one in redrive["letters"]
        )
        parts.append(table(("dead letter", "outcome", "goes on as", "why"), letters, nothing=""))
    if not redrive["more"]:
        return Group(*parts)
    return Group(*parts, Text(f"there are more: redrive again{_because(redrive['stopped'])}", style="yellow"))


def _because(stopped: str | None) -> str:
    return f" ({stopped})" if stopped else ""


def redrives_table(redrives: dict[str, Any]) -> RenderableType:
    """Draw one line for each redrive."""
    rows = (
        [one["begun_at"][:19], one["fingerprint"], escape(one["redriven_by"]), *(_count(one[name]) for name in _COUNTS)]
        for one in redrives["redrives"]
    )
    return table(("begun", "fingerprint", "by", *_COUNTS), rows, nothing="nothing was redriven")


_COUNTS = ("jobs", "forked", "already", "refused")


def _count(number: int | None) -> str:
    return "?" if number is None else str(number)
