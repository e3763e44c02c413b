"""Jobs and their traces, drawn for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text
from rich.tree import Tree

from wayline.standalone.terminal.money_views import job_costs, usd
from wayline.standalone.terminal.table import details, table

QUOTE_MAX = 300
INPUT_MAX = 60
"""The most characters of a job's input in a row of a list."""
STATUS_STYLE = {
    "completed": "green",
    "ready": "green",
    "ok": "green",
    "failed": "red",
    "error": "red",
    "cancelled": "yellow",
    "parked": "yellow",
}


def ms(duration: float | None) -> str:
    """Format a duration."""
    if duration is None:
        return "running"
    return f"{duration:.0f} ms" if duration < 10_000 else f"{duration / 1000:.1f} s"


def tokens(usage: dict[str, Any] | None) -> int:
    """Return the sum of a usage's tokens."""
    return (usage["input"] + usage["output"]) if usage else 0


def status(name: str) -> str:
    """Return a status in its colour."""
    style = STATUS_STYLE.get(name)
    return f"[{style}]{name}[/{style}]" if style else name


def job_end(job: dict[str, Any]) -> RenderableType:
    """Draw a job's answer, its citations, and what it took."""
    parts: list[RenderableType] = []
    if job["answer"]:
        parts += [Text(""), Text(job["answer"])]
    if job["error"]:
        parts += [Text(""), Text(f"{job['error']['code']}: {job['error']['message']}", style="red")]
    if job["citations"]:
        parts += [Text(""), Text("Citations", style="bold")]
        parts += [_citation(number, citation) for number, citation in enumerate(job["citations"], 1)]
    return Group(*parts, Text(""), Text.from_markup(job_line(job)))


def _citation(number: int, citation: dict[str, Any]) -> Text:
    quote = " ".join(citation["quote"].split())
    shown = quote if len(quote) <= QUOTE_MAX else quote[: QUOTE_MAX - 1] + "…"
    return Text.assemble(f"  [{number}] ", (citation["document"], "cyan"), f"  “{shown}”")


def job_line(job: dict[str, Any]) -> str:
    """Format how a job ended and what it took, in one line."""
    words = [status(job["status"]), f"{job['steps']} steps", f"{tokens(job['usage'])} tokens", usd(job["cost_usd"])]
    saved = (job.get("costs") or {}).get("saved_usd", "0")
    if float(saved):
        words.append(f"cache saved {usd(saved)}")
    if spared := (job.get("costs") or {}).get("tool_tokens_saved"):
        words.append(f"tool search {'saved' if spared > 0 else 'cost'} {abs(spared):,} tokens")
    if why := _reservation(job):
        words.insert(1, f"[yellow]{escape(why)}[/yellow]")
    return f"{' · '.join(words)} · trace: wayline trace {job['job_id']}"


def _reservation(job: dict[str, Any]) -> str:
    """Return why a job's answer is incomplete; empty where it is complete."""
    if job["partial"]:
        return f"partial: {job['reason'] or 'a limit was reached'}"
    return job["reason"] or ""


def planned(plan: dict[str, Any]) -> RenderableType:
    """Draw the route and the predicted cost of a job that was not run."""
    route = plan["route"]
    cost = "its cost is unknown"
    if route["estimated_cost_usd"] is not None:
        least, most = map(usd, route["estimated_cost_range_usd"])
        cost = f"expected to cost {usd(route['estimated_cost_usd'])}, between {least} and {most}"
    lines = [
        Text.assemble(
            (f"{plan['agent']} v{plan['agent_version']}", "bold"), f" on {route['provider']}/{route['model']}"
        ),
        Text(f"  {route['reason']}"),
    ]
    if route["classifier"]:
        lines.append(Text(f"  {route['classifier']} would be asked first which type of task it is"))
    lines.append(Text(f"  {cost}; nothing was run"))
    if plan["refusal"]:
        lines.append(Text(f"  it would be refused: {plan['refusal']['message']}", style="red"))
    return Group(*lines)


def _versioned(job: dict[str, Any]) -> str:
    version = f" v{job['agent_version']}" if job["agent_version"] else ""
    return escape(f"{job['agent']}{version}{' (' + label + ')' if (label := job.get('agent_label')) else ''}")


def job_details(job: dict[str, Any], steps: Sequence[dict[str, Any]] = ()) -> RenderableType:
    """Draw everything about one job; of its steps what each came to."""
    route, fired_by = job["route"] or {}, job.get("schedule")
    rows = [
        ("job", job["job_id"]),
        ("status", status(job["status"])),
        ("agent", _versioned(job)),
        (
            "model",
            f"{route['provider']}/{route['model']} ({route['tier']}): {escape(route['reason'])}" if route else None,
        ),
        ("input", escape(job.get("input") or "")),
        ("schedule", f"{fired_by['schedule']}, for {fired_by['due_at']}" if fired_by else None),
        ("created", job["created_at"]),
        ("ended", job["ended_at"]),
        ("trace", job["trace_id"]),
        ("cost", job_costs(job)),
        ("waits for", escape(_waiting(job)) if job["waiting_for"] else None),
        ("feedback", _judged(job.get("feedback"))),
    ]
    came_to = [f"  step {step['step']}  {step['observation']}" for step in steps if step.get("observation")]
    return Group(details((name, value) for name, value in rows if value), *map(Text, came_to), job_end(job))


def _judged(summary: dict[str, Any] | None) -> str | None:
    if summary is None:
        return None
    score = f"score {_score(summary['score'])}" if summary["score"] is not None else "no score"
    named = "".join(f", {escape(label)} {times}" for label, times in sorted(summary["labels"].items()))
    return f"{summary['judgements']} given, {score}{named}"


def feedback_table(told: dict[str, Any]) -> RenderableType:
    """Draw what was said of a job, or the one judgement that was stored."""
    rows = [
        (one["by"], one["key"], _score(one["score"]), one["label"] or "", one["comment"], one["at"][:19])
        for one in told.get("feedback", [told])
    ]
    columns = ("by", "key", "score", "label", "comment", "when")
    return table(columns, (map(escape, row) for row in rows), nothing="nobody has judged this job")


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:.2f}"


def run_result(run: dict[str, Any]) -> RenderableType:
    """Draw a user's newest run of an agent, and what became of it."""
    outcome, plan, known = run["outcome"] or {}, run["plan"] or {}, run["metadata"]
    rows = [
        ("job", run["job_id"]),
        ("status", status(run["status"])),
        ("agent", f"{escape(run['agent'])}{' v' + str(known['agent_version']) if known['agent_version'] else ''}"),
        ("user", escape(run["user_id"])),
        ("session", escape(known["session_id"] or "")),
        ("model", f"{plan['provider']}/{plan['model']}: {escape(plan['reason'])}" if plan else None),
        ("accepted", run["accepted_at"]),
        ("ended", run["ended_at"]),
        ("took", f"{known['steps']} steps, {known['tokens']} tokens, {usd(known['cost_usd'])}"),
        ("reason", escape(outcome.get("reason") or "")),
    ]
    parts: list[RenderableType] = [details((name, value) for name, value in rows if value)]
    if outcome.get("answer"):
        more = f"\n… the whole answer: wayline jobs show {run['job_id']}" if outcome["cut"] else ""
        parts += [Text(""), Text(outcome["answer"] + more)]
    if error := outcome.get("error"):
        parts += [Text(""), Text(f"{error['code']}: {error['message']}", style="red")]
    return Group(*parts)


def _waiting(job: dict[str, Any]) -> str:
    from wayline.client.park_reasons import in_words

    waiting = job["waiting_for"]
    lines = [_approval(job["job_id"], one) for one in waiting.get("approvals", ())]
    return "\n".join([in_words(job["job_id"], waiting), *lines])


def _approval(job_id: str, asked: dict[str, Any]) -> str:
    shown = json.dumps(asked["arguments"], ensure_ascii=False)
    approve = f"wayline jobs approve {job_id} {asked['approval_id']}"
    if (schema := asked.get("input_schema")) is None:
        return f"{asked['tool']} {shown}\n  {approve}, or: wayline jobs deny …"
    wanted = json.dumps(schema.get("properties", schema), ensure_ascii=False)
    answer = f"  {approve} --arguments JSON, or: wayline jobs deny …"
    return f"{asked['tool']} {shown} asks: {asked['reason']}\n  as JSON with {wanted}\n{answer}"


def approvals_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row for each decision that a job waits for."""
    return table(
        ("job", "agent", "why", "id", "tool", "arguments", "reason", "until"),
        (
            (
                wait["job_id"],
                escape(wait["agent"]),
                wait["why"],
                wait["id"],
                escape(wait["tool"]),
                escape(json.dumps(wait["arguments"], ensure_ascii=False)),
                escape(wait["reason"]),
                wait["expires_at"],
            )
            for wait in page["approvals"]
        ),
        nothing="Nothing waits for a decision.",
    )


def decided_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row for each decision that a person made."""
    return table(
        ("job", "agent", "tool", "decision", "by", "when"),
        (
            (
                one["job_id"],
                escape(one["agent"]),
                escape(one["tool"]),
                escape(_decision(one)),
                escape(one["by"] or "-"),
                one["decided_at"][:19],
            )
            for one in page["decided"]
        ),
        nothing="There was no decision in this time.",
    )


def _decision(one: dict[str, Any]) -> str:
    edited = " with other arguments" if one["edited"] else ""
    return one["decision"] + edited + (f": {one['reason']}" if one["reason"] else "")


def waits_for(job: dict[str, Any]) -> RenderableType:
    """Draw what a parked job waits for, and the command that answers it."""
    return Text(f"The job waits and costs nothing meanwhile: {_waiting(job)}", style="yellow")


def jobs_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row for each job, and below them how many there are where they were counted."""
    jobs = table(
        ("job", "status", "agent", "steps", "tokens", "cost", "created", "input"),
        (
            (
                job["job_id"],
                status(job["status"]),
                escape(job["agent"]),
                str(job["steps"]),
                str(tokens(job["usage"])),
                usd(job["cost_usd"]),
                str(job["created_at"] or "")[:19],
                escape(shortened(job.get("input") or "")),
            )
            for job in page["jobs"]
        ),
        nothing="no jobs",
    )
    return Group(jobs, _counts(page["facets"])) if page.get("facets") else jobs


def _counts(facets: dict[str, Any]) -> Text:
    """Return how many jobs there are, by what they are of, the most first."""
    most = "at least " if facets["jobs"] >= facets["counted_max"] or facets.get("counted_since") else ""
    groups = (
        ", ".join(f"{name} {count}" for name, count in facets[kind].items()) for kind in ("status", "agent", "model")
    )
    return Text(" · ".join([f"{most}{facets['jobs']} jobs", *filter(None, groups)]), style="dim")


def shortened(text: str) -> str:
    """Return the beginning of a text, as much as a row of a list shows."""
    return text if len(text) <= INPUT_MAX else f"{text[: INPUT_MAX - 1]}…"


def trace_tree(trace: dict[str, Any]) -> RenderableType:
    """Draw the spans of a job: where each ran, how long, and what it cost."""
    totals = trace["totals"]
    tree = Tree(_span(trace["root"]), guide_style="dim")
    _grow(tree, trace["root"]["children"])
    took = f"{ms(totals['duration_ms'])} · {totals['tokens']} tokens · {usd(totals['cost_usd'])}"
    line = Text(f"{took} · {totals['spans']} spans · trace {trace['trace_id']}", style="dim")
    if not totals.get("missing"):
        return Group(tree, line)
    missing = f"At least {totals['missing']} spans have not arrived: they are late, or were lost with their process."
    return Group(tree, line, Text(missing, style="yellow"))


def _grow(tree: Tree, spans: Iterable[dict[str, Any]]) -> None:
    for span in spans:
        _grow(tree.add(_span(span)), span["children"])


def _span(span: dict[str, Any]) -> Text:
    style = {"error": "red", "open": "yellow"}.get(span["status"], "")
    text = Text.assemble((span["name"], style), "  ", (span["service"], "cyan"), "  ", (ms(span["duration_ms"]), "dim"))
    if span["usage"]:
        text.append(f"  {tokens(span['usage'])} tokens")
        text.append(f"  {usd(span['cost_usd'])}")
    return text
