"""A job as it happens, on a terminal."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from wayline.client.park_reasons import in_words
from wayline.contracts.observation import observation
from wayline.standalone.terminal.job_views import ms, tokens
from wayline.standalone.terminal.money_views import usd

ARGUMENTS_MAX = 80
TEXT_TAIL_MAX = 400
MISSED = "\0"
"""In the place of each character that was not seen: no model's text has it."""


class JobProgress:
    """One line for each thing that has happened; the last line moves while something goes on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, transient=True, refresh_per_second=8) if console.is_terminal else None
        self._text = ""
        self._lines = EventLines()
        self._call = (0, 0)
        """The step and attempt that `_text` is of."""

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, event: dict[str, Any]) -> None:
        """Print one event, if it matters to a user who waits for the job."""
        if event["type"] == "delta":
            self._add(event)
            return
        if event["type"] == "progress":
            # The lines say more of it.
            return
        self._text = ""
        printed = self._lines.line(event)
        if printed is not None:
            self._console.print(printed, soft_wrap=True)
        self._show_activity(_activity(event))

    def _add(self, delta: dict[str, Any]) -> None:
        """Add a delta: text of a newer call replaces that of an older one, text of an older call is dropped."""
        call = (delta["step"], delta["attempt"])
        if call < self._call:
            return
        before = "" if call > self._call else self._text
        missed = (delta.get("offset") or 0) > len(before)
        # Who comes in its midst, or whose connection broke, is told so; the whole answer comes at the end.
        self._text = before.ljust(delta["offset"], MISSED) if missed else before
        self._text += delta["text"]
        self._call = call
        shown = self._text.lstrip(MISSED)
        self._show_activity(("… " if shown != self._text else "") + shown.replace(MISSED, "")[-TEXT_TAIL_MAX:])

    def _show_activity(self, what: str) -> None:
        if self._live is not None:
            self._live.update(Spinner("line", text=Text(what)) if what else Text(""))


class EventLines:
    """Draws a job's events one after another; a tool's result is said with what the tool was asked."""

    def __init__(self) -> None:
        self._asked: dict[tuple[int, str], dict[str, Any]] = {}

    def line(self, event: dict[str, Any]) -> Text | None:
        """Draw an event as one line; None for events that only the log needs."""
        if event["type"] == "tool.requested":
            self._asked[event["step"], event["call"]] = event["arguments"]
        if event["type"] == "tool.completed":
            return _tool_line(event, self._asked.pop((event["step"], event["call"]), {}))
        return event_line(event)


def event_line(event: dict[str, Any]) -> Text | None:
    """Draw an event as one line; None for events that only the log needs."""
    match event["type"]:
        case "job.routed":
            route = event["route"]
            label = f" ({event['agent_label']})" if event.get("agent_label") else ""
            agent = f"{event['agent']} v{event['agent_version']}{label}"
            return Text.assemble((f"  {agent}", "bold"), f" on {route['provider']}/{route['model']}: {route['reason']}")
        case "model.completed":
            took = f"{ms(event['duration_ms'])}, {tokens(event['usage'])} tokens, {usd(event['cost_usd'])}"
            return Text.assemble(f"  step {event['step']}  model  ", (took, "dim"))
        case "model.failed":
            taken_back = event.get("retracted_chars") and f" ({event['retracted_chars']} characters taken back)"
            failed = f"  step {event['step']}  model failed: {event['error']['message']}{taken_back or ''}"
            return Text(failed, style="red")
        case "job.rerouted":
            route = event["route"]
            return Text(f"  on {route['provider']}/{route['model']}: {route['reason']}", style="yellow")
        case "aux.completed":
            took = f"{ms(event['duration_ms'])}, {tokens(event['usage'])} tokens, {usd(event['cost_usd'])}"
            return Text.assemble(f"  {event['purpose']}  ", (took, "dim"))
        case "aux.failed":
            return Text(f"  {event['purpose']} failed: {event['error']['message']}", style="yellow")
        case "task.classified":
            return _type_line(event)
        case "tool.completed":
            return _tool_line(event, {})
        case "job.completed" if event.get("reason"):
            return Text(f"  {event['reason']}", style="yellow")
        case "job.parked":
            words = in_words(event["job_id"], event["waiting"]).replace("\n", "\n    ")
            return Text(f"  parked, waits for {words}", style="yellow")
        case "job.handed_back" | "job.resumed" | "job.cancel_requested" | "session.steered":
            return Text(f"  {event['type'].rpartition('.')[2].replace('_', ' ')}", style="yellow")
        case _:
            return None


def _type_line(event: dict[str, Any]) -> Text:
    if event["task_type"] is None:
        return Text(f"  not classified: {event['reason']}", style="yellow")
    return Text(f"  classified as {event['task_type'].replace('_', ' ')}")


def _tool_line(event: dict[str, Any], arguments: dict[str, Any]) -> Text:
    took = f"{ms(event['duration_ms'])}, {event['size_bytes']} bytes"
    line = Text.assemble(f"  step {event['step']}  ", (event["tool"], "cyan"), "  ", (took, "dim"))
    if event["status"] != "success":
        why = event["error"]["message"] if event["error"] else ""
        line.append(f"  {event['status']} {why}", style="red")
    else:
        content = event.get("full") or event.get("content", "")
        line.append(f"  {observation(event['tool'], arguments, content, failed=False)}")
    return line


def _activity(event: dict[str, Any]) -> str:
    match event["type"]:
        case "model.requested":
            return f"step {event['step']}  asking {event['provider']}/{event['model']} …"
        case "aux.requested":
            return f"{event['purpose']}  asking {event['provider']}/{event['model']} …"
        case "tool.requested":
            arguments = json.dumps(event["arguments"], ensure_ascii=False)
            return f"step {event['step']}  {event['tool']} {arguments[:ARGUMENTS_MAX]} …"
        case "queue":
            return f"number {event['position']} of {event['queued']} in the queue …"
        case "job.completed" | "job.failed" | "job.cancelled" | "job.parked":
            return ""
        case _:
            return "…"


def tenant_event_line(event: dict[str, Any]) -> Text:
    """Draw an event of any job in one line."""
    if event["type"] == "gap":
        return Text(
            f"what happened before {event['since'][:19]} is not told again: `wayline jobs list`", style="yellow"
        )
    about = event.get("about", {})
    words = [event.get("error"), event.get("waiting_for"), about.get("tool"), about.get("model"), about.get("cost_usd")]
    told = "  ".join(str(word) for word in words if word is not None)
    return Text(f"{event['at'][:19]}  {event['job_id']}  {event.get('agent') or '?'}  {event['type']}  {told}".rstrip())
