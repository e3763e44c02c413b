"""MCP servers, drawn for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape

from wayline.standalone.terminal.job_views import shortened
from wayline.standalone.terminal.table import details, table

STYLES = {
    "connected": "green",
    "connecting": "yellow",
    "away": "red",
    "needs_authorization": "yellow",
    "disabled": "dim",
}


def servers_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row a server."""
    return table(
        ("server", "of", "state", "tools", "to approve", "where", "why"),
        (
            (
                server["name"],
                server["of"],
                _state(server["state"]),
                _tools(server),
                str(server["quarantined"] or ""),
                escape(shortened(_bus(server["service"]) if server.get("service") else _where(server["config"]))),
                escape(shortened(server["why"])),
            )
            for server in page["servers"]
        ),
        nothing="no servers",
    )


def logins_table(logins: list[dict[str, Any]]) -> RenderableType:
    """Draw one row a user who is logged in to a server."""
    return table(
        ("user", "logged in", "state"),
        (
            (escape(one["user_id"]), one["logged_in_at"], "has to log in again" if one["refused"] else "logged in")
            for one in logins
        ),
        nothing="nobody is logged in",
    )


def secrets_table(listed: dict[str, Any]) -> RenderableType:
    """Draw one row a secret, by its name."""
    return table(
        ("secret", "stored", "used by"),
        ((escape(one["name"]), one["saved_at"], escape(", ".join(one["used_by"]))) for one in listed["secrets"]),
        nothing="no secrets",
    )


def resources_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row a resource and one a template."""
    rows = [(one["uri"], one) for one in page["resources"]] + [(one["uri_template"], one) for one in page["templates"]]
    return table(
        ("address", "type", "what it is"),
        (
            (escape(where), escape(one["mime_type"]), escape(shortened(one["description"] or one["name"])))
            for where, one in rows
        ),
        nothing="no resources",
    )


def contents(page: dict[str, Any], *, shown: Callable[[str], str] = str) -> RenderableType:
    """Draw what a resource holds: texts whole, each as `shown` returns it, of bytes how many they are."""
    return Group(*(escape(shown(_content(one))) for one in page["contents"]))


def _content(part: dict[str, Any]) -> str:
    if part["text"] is not None:
        return part["text"]
    return f"{part['uri']}: {part['mime_type'] or 'bytes'}, {len(part['base64'] or '')} characters of base64"


def prompts_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row a prompt; an argument that may be left out is in brackets."""
    return table(
        ("prompt", "arguments", "what it is"),
        (
            (
                escape(one["name"]),
                escape(" ".join(a["name"] if a["required"] else f"[{a['name']}]" for a in one["arguments"])),
                escape(shortened(one["description"] or one["title"])),
            )
            for one in page["prompts"]
        ),
        nothing="no prompts",
    )


def messages(page: dict[str, Any], *, shown: Callable[[str], str] = str) -> RenderableType:
    """Draw the messages of a prompt, each as `shown` returns it, a content that is no text as its type."""
    texts = (
        f"{one['role']}: {one['content'].get('text') or one['content'].get('type', '')}" for one in page["messages"]
    )
    return Group(*(escape(shown(text)) for text in texts))


def _bus(service: dict[str, Any]) -> str:
    """Return what is known of a service on the bus: its version, its processes, and when it was heard last."""
    version = f"version {service['version']}" if service["version"] else ""
    count = service["instances"]
    running = f"{count} instance{'s' * (count != 1)}" if count else ""
    seen = f"last seen {service['last_seen'][:19]}Z" if service["last_seen"] else ""
    return ", ".join(part for part in ("bus", version, running, seen) if part)


def import_line(done: dict[str, Any]) -> str:
    """Draw in one line what became of a server that was imported."""
    name = done["name"] if done["given"] == done["name"] else f"{done['given']} as {done['name']}"
    if not done["saved"]:
        return escape(f"{name}: not saved: {done['why']}")
    without = f", without {', '.join(done['dropped'])}" if done["dropped"] else ""
    advice = f"\n  {done['advice']}" if done.get("advice") else ""
    return escape(f"{name}: saved{' and disabled' if done['disabled'] else ''}{without}{advice}")


def server_line(server: dict[str, Any]) -> str:
    """Draw a server's state in one line."""
    why = f": {server['why']}" if server["why"] else ""
    return f"{server['name']} is {server['state']}{escape(why)}"


def changed_definitions(changes: list[dict[str, Any]]) -> RenderableType:
    """Draw the definitions that wait for approval, each with what differs from the approved one."""
    return Group(*(Group(f"[bold]{escape(_title(change))}[/bold]", *_lines(change), "") for change in changes))


def _title(change: dict[str, Any]) -> str:
    if change["kind"] == "instructions":
        return "the server's instructions have changed: all its tools are held back"
    return f"{change['tool']} {'is new' if change['kind'] == 'new' else 'has changed'}"


def _lines(change: dict[str, Any]) -> Iterator[str]:
    for difference in change["differences"]:
        yield f"  {escape(difference['path'])}"
        for sign, colour, value in (("-", "red", difference["before"]), ("+", "green", difference["after"])):
            if value is not None:
                yield f"  [{colour}]{sign} {escape(value)}[/{colour}]"
    if not change["differences"]:
        yield "  the difference is in what is hidden as a secret"


def impact_view(found: dict[str, Any]) -> RenderableType:
    """Draw what a change of a server touches."""
    about = (
        ("agents", _counted(found["agents_total"], (f"{one['name']} v{one['version']}" for one in found["agents"]))),
        ("parked jobs", _counted(found["parked_total"], (one["job_id"] for one in found["parked"]))),
        ("calls", f"{found['calls']} of {found['jobs']} jobs since {found['since'][:10]}"),
        ("would fail", str(found["would_fail"])),
        ("not compared", str(found["unchecked"] or "")),
    )
    tools = table(
        ("tool", "change", "calls", "would fail"),
        ((escape(one["tool"]), _change(one), str(one["calls"]), str(one["would_fail"])) for one in found["tools"]),
        nothing="no tools",
    )
    failing = table(
        ("job", "step", "tool", "why it would fail"),
        (
            (one["job_id"], str(one["step"]), escape(one["tool"]), escape(shortened(one["why"])))
            for one in found["failing"]
        ),
        nothing="",
    )
    shown = [details((name, value) for name, value in about if value), tools]
    return Group(*shown, failing) if found["failing"] else Group(*shown)


def _change(tool: dict[str, Any]) -> str:
    unusable = tool.get("unusable")
    return f"{tool['change']}, unusable: {escape(shortened(unusable))}" if unusable else tool["change"]


def _counted(total: int, shown: Iterable[str]) -> str:
    names = list(shown)
    more = ", …" if total > len(names) else ""
    return f"{total}: {escape(', '.join(names))}{more}" if names else str(total)


def _effect(tool: dict[str, Any]) -> str:
    proposed = tool.get("proposed")
    return tool["effect"] if proposed is None else f"{tool['effect']} (its server proposes {proposed})"


def report(found: dict[str, Any]) -> RenderableType:
    """Draw what a server offers, or why it cannot be reached."""
    if not found["ok"]:
        written = found["errors"] and f"\n\nIt wrote:\n{escape(found['errors'])}"
        return f"[red]no connection[/red] after {_seconds(found)}: {escape(found['why'])}{written}"
    about = (
        ("server", escape(" ".join(filter(None, (found["server"], found["version"]))))),
        ("protocol", escape(found["protocol"])),
        ("took", _seconds(found)),
        ("resources", escape(", ".join(found["resources"]))),
        ("prompts", escape(", ".join(found["prompts"]))),
    )
    tools = table(
        ("tool", "effect", "what it does"),
        ((escape(tool["name"]), _effect(tool), escape(tool["description"].split("\n")[0])) for tool in found["tools"]),
        nothing="no tools",
    )
    problems = [f"[yellow]{escape(line)}[/yellow]" for line in found.get("problems", ())]
    return Group(details((name, value) for name, value in about if value), tools, *problems)


def _tools(server: dict[str, Any]) -> str:
    if server["state"] == "connecting" and not server["tools"]:
        # Nobody knows yet.
        return "…"
    left_out = server.get("left_out")
    return f"{server['tools']} ({left_out} left out)" if left_out else str(server["tools"])


def _state(state: str) -> str:
    return f"[{STYLES[state]}]{state}[/{STYLES[state]}]"


def _where(config: dict[str, Any] | None) -> str:
    if config is None:
        return ""
    return config["url"] or " ".join((config["command"], *config["args"]))


def _seconds(found: dict[str, Any]) -> str:
    return f"{found['took_ms'] / 1000:.1f} s"
