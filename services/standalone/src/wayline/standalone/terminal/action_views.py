"""Actions on many jobs, drawn for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from wayline.standalone.terminal.table import table


def action_progress(action: dict[str, Any]) -> RenderableType:
    """Draw how far an action is, and which jobs it could not be done to."""
    told = _counts(action) or "no job"
    if action["dry_run"]:
        line = f"{action['action']} would be: {told}{'; there are more' if action['more'] else ''}; nothing was done"
    else:
        line = f"{action['action_id']}: {action['action']}, {action['state']}: {told}"
    waits = [Text(f"  it waits: {action['waits_for']}", style="yellow")] if action["waits_for"] else []
    refused = [Text(f"  {one['job_id']}: {one['reason']}") for one in action["refused"]]
    return Group(Text(line), *waits, *refused)


def actions_table(page: dict[str, Any]) -> RenderableType:
    """Draw actions, the newest first."""
    rows = [
        (one["action_id"], one["action"], one["state"], _counts(one), one["asked_by"], one["begun_at"][:19])
        for one in page["actions"]
    ]
    columns = ("action", "what", "state", "jobs", "by", "begun")
    return table(columns, (map(escape, row) for row in rows), nothing="nothing was done to many jobs at once")


def _counts(action: dict[str, Any]) -> str:
    return ", ".join(f"{jobs} {outcome}" for outcome, jobs in sorted(action["counts"].items()))


def audit_table(page: dict[str, Any]) -> RenderableType:
    """Draw who changed what, the newest first."""
    rows = [
        (
            one["at"][:19],
            one["by"],
            one["operation"],
            f"{one['kind']} {one['name']}".strip(),
            (one["outcome"] or "not known") + (f" ({one['code']})" if one["code"] else ""),
            one["detail"],
        )
        for one in page["entries"]
    ]
    columns = ("when", "by", "operation", "what", "outcome", "detail")
    return table(columns, (map(escape, row) for row in rows), nothing="nothing was changed")
