"""What the gateway says, drawn for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text
from rich.tree import Tree

from wayline.standalone.terminal.money_views import job_costs, usd
from wayline.standalone.terminal.table import details, table

QUOTE_MAX = 300
INPUT_MAX = 60
"""Characters of a job's input in a row of a list."""
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
    """How long something took."""
    if duration is None:
        return "running"
    return f"{duration:.0f} ms" if duration < 10_000 else f"{duration / 1000:.1f} s"


def tokens(usage: dict[str, Any] | None) -> int:
    """All tokens of a usage."""
    return (usage["input"] + usage["output"]) if usage else 0


def status(said: str) -> str:
    """A status in its colour."""
    style = STATUS_STYLE.get(said)
    return f"[{style}]{said}[/{style}]" if style else said


def job_end(job: dict[str, Any]) -> RenderableType:
    """The answer, what it rests on, and what it took."""
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
    """One line about a job: how it ended and what it took."""
    words = [status(job["status"]), f"{job['steps']} steps", f"{tokens(job['usage'])} tokens", usd(job["cost_usd"])]
    saved = (job.get("costs") or {}).get("saved_usd", "0")
    if float(saved):
        words.append(f"cache saved {usd(saved)}")
    if why := _reservation(job):
        words.insert(1, f"[yellow]{escape(why)}[/yellow]")
    return f"{' · '.join(words)} · trace: wayline trace {job['job_id']}"


def _reservation(job: dict[str, Any]) -> str:
    """Why a job is not all that was asked for."""
    if job["partial"]:
        return f"partial: {job['reason'] or 'a limit was reached'}"
    return job["reason"] or ""


def planned(said: dict[str, Any]) -> RenderableType:
    """What would become of a job, and what it would cost."""
    route = said["route"]
    cost = "what it costs is unknown"
    if route["estimated_cost_usd"] is not None:
        least, most = map(usd, route["estimated_cost_range_usd"])
        cost = f"expected to cost {usd(route['estimated_cost_usd'])}, between {least} and {most}"
    lines = [
        Text.assemble(
            (f"{said['agent']} v{said['agent_version']}", "bold"), f" on {route['provider']}/{route['model']}"
        ),
        Text(f"  {route['reason']}"),
    ]
    if route["classifier"]:
        lines.append(Text(f"  {route['classifier']} would be asked first which type of task it is"))
    lines.append(Text(f"  {cost}; nothing was run"))
    if said["refusal"]:
        lines.append(Text(f"  it would be refused: {said['refusal']['message']}", style="red"))
    return Group(*lines)


def job_details(job: dict[str, Any]) -> RenderableType:
    """Everything about one job."""
    route = job["route"] or {}
    rows = [
        ("job", job["job_id"]),
        ("status", status(job["status"])),
        ("agent", f"{escape(job['agent'])}{' v' + str(job['agent_version']) if job['agent_version'] else ''}"),
        (
            "model",
            f"{route['provider']}/{route['model']} ({route['tier']}): {escape(route['reason'])}" if route else None,
        ),
        ("input", escape(job.get("input") or "")),
        ("created", job["created_at"]),
        ("ended", job["ended_at"]),
        ("trace", job["trace_id"]),
        ("cost", job_costs(job)),
        ("waits for", escape(_waiting(job)) if job["waiting_for"] else None),
    ]
    return Group(details((name, value) for name, value in rows if value), job_end(job))


def _waiting(job: dict[str, Any]) -> str:
    waiting = job["waiting_for"]
    if waiting["why"] == "budget":
        raised = f"raise it with: wayline jobs raise {job['job_id']} USD, or wayline budgets set"
        return f"{waiting['question'] or 'its budget is used up'}\n{raised}"
    return (
        f"{waiting['question'] or 'a decision about ' + str(waiting['tool'])}\n"
        f"answer with: wayline jobs answer {job['job_id']} {waiting['wait_id']} succeeded|failed|retry"
    )


def waits_for(job: dict[str, Any]) -> RenderableType:
    """What a parked job needs, and how to give it."""
    return Text(f"The job waits and costs nothing meanwhile: {_waiting(job)}", style="yellow")


def jobs_table(page: dict[str, Any]) -> RenderableType:
    """One row a job."""
    return table(
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
                escape(_shortened(job.get("input") or "")),
            )
            for job in page["jobs"]
        ),
        nothing="no jobs",
    )


def _shortened(text: str) -> str:
    return text if len(text) <= INPUT_MAX else f"{text[: INPUT_MAX - 1]}…"


def trace_tree(trace: dict[str, Any]) -> RenderableType:
    """The spans of a job with where each ran, how long, and what it took."""
    totals = trace["totals"]
    tree = Tree(_span(trace["root"]), guide_style="dim")
    _grow(tree, trace["root"]["children"])
    took = f"{ms(totals['duration_ms'])} · {totals['tokens']} tokens · {usd(totals['cost_usd'])}"
    line = Text(f"{took} · {totals['spans']} spans · trace {trace['trace_id']}", style="dim")
    if not totals.get("missing"):
        return Group(tree, line)
    missing = f"At least {totals['missing']} more have not arrived: they are late, or were lost with their process."
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


def hits(result: dict[str, Any]) -> RenderableType:
    """Passages, best first."""
    parts: list[RenderableType] = []
    for number, hit in enumerate(result["hits"], 1):
        parts.append(Text.assemble(f"[{number}] ", (hit["document"], "cyan"), (f"  {hit['score']:.4f}", "dim")))
        parts.append(Text(f"    {' '.join(hit['text'].split())[:QUOTE_MAX]}"))
    if not result["hits"]:
        parts.append(Text(result["note"] or "nothing was found"))
    elif result["note"]:
        parts.append(Text(result["note"], style="dim"))
    return Group(*parts)


def documents_table(page: dict[str, Any]) -> RenderableType:
    """One row a document."""
    return table(
        ("document", "name", "status", "chunks", "bytes"),
        (
            (
                document["document_id"],
                escape(document["name"]),
                status(document["status"]) + (f": {escape(document['error'])}" if document["error"] else ""),
                str(document["chunks_done"]),
                str(document["size_bytes"]),
            )
            for document in page["documents"]
        ),
        nothing="no documents yet: `wayline ingest PATH` adds some",
    )


def agents_table(agents: dict[str, Any]) -> RenderableType:
    """One row an agent."""
    return table(
        ("agent", "version", "model", "what it is for"),
        (
            (
                agent["name"],
                str(agent["version"]),
                agent["config"]["model"] or "the router decides",
                escape(agent["config"]["description"]),
            )
            for agent in agents["agents"]
        ),
        nothing="no agents",
    )


def tools_table(tools: dict[str, Any]) -> RenderableType:
    """One row a tool."""
    return table(
        ("tool", "server", "a repeat would be", "what it does"),
        (
            (escape(tool["name"]), escape(tool["server"]), tool["effect"], escape(tool["description"].split("\n")[0]))
            for tool in tools["tools"]
        ),
        nothing="no tools",
    )


def tenants_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row a tenant."""
    return table(
        ("tenant", "created", "state"),
        (
            (
                tenant["tenant"],
                str(tenant["created_at"])[:19],
                f"disabled: {escape(tenant['disabled_reason'] or 'no reason given')}"
                if tenant["disabled_at"]
                else "ok",
            )
            for tenant in page["tenants"]
        ),
        nothing="no tenants",
    )


def keys_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row an API key."""
    return table(
        ("id", "tenant", "name", "scopes", "created", "last used", "expires", "state"),
        (
            (
                key["id"],
                key["tenant"],
                escape(key["name"]),
                ",".join(key["scopes"]),
                str(key["created_at"])[:10],
                str(key["last_used_at"] or "never")[:16],
                str(key["expires_at"] or "never")[:10],
                "revoked" if key["revoked_at"] else "ok",
            )
            for key in page["keys"]
        ),
        nothing="no API keys: whoever reaches the port on this machine acts as tenant default",
    )


def credentials_table(kept: list[dict[str, Any]]) -> RenderableType:
    """Draw one row a credential of the bus."""
    return table(
        ("name", "tenant", "scopes", "created", "public key"),
        (
            (one["name"], one["tenant"], ",".join(one["scopes"]), one["created_at"][:10], one["public_key"])
            for one in kept
        ),
        nothing="no credentials: on this machine whoever reaches the port is a client of tenant default",
    )


def new_key(key: dict[str, Any]) -> RenderableType:
    """Draw a key that is shown this once."""
    return Text(
        f"{key['key']}\n\nkey {key['id']} of tenant {key['tenant']} ({', '.join(key['scopes'])}), expires "
        f"{str(key['expires_at'] or 'never')[:19]}. It is not shown again: keep it, and send it as "
        "`Authorization: Bearer …` or in WAYLINE_API_KEY. Every request needs a key now."
    )


def dead_letters_table(page: dict[str, Any]) -> RenderableType:
    """One row a dead letter."""
    return table(
        ("number", "at", "code", "subject", "reason"),
        (
            (str(dead["sequence"]), str(dead["at"])[:19], dead["code"], escape(dead["subject"]), escape(dead["reason"]))
            for dead in page["dead_letters"]
        ),
        nothing="no dead letters",
    )


def dismissed_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row a dismissed dead letter."""
    return table(
        ("number", "dismissed", "code", "by", "why"),
        (
            (
                str(dead["sequence"]),
                str(dead["dismissed_at"])[:19],
                dead["code"],
                escape(dead["dismissed_by"]),
                escape(dead["reason"]),
            )
            for dead in page["dismissed"]
        ),
        nothing="no dismissed dead letters",
    )


def backtest_table(said: dict[str, Any]) -> RenderableType:
    """Which tiers and costs another policy changes."""
    rows = ((row["was"], row["now"], str(row["jobs"])) for row in said["tiers"])
    tiers = table(("was", "now", "jobs"), rows, nothing="no jobs")
    verdict = f"{said['same']} of {said['jobs']} jobs keep their whole route"
    verdict += "".join(f"; {jobs} were decided by {policy or 'none'}" for policy, jobs in said["decided_by"].items())
    money = f"{usd(said['was_usd'])} became {usd(said['now_usd'])}"
    if said["unknown_cost"]:
        money += f", without {said['unknown_cost']} jobs whose cost is unknown"
    if said.get("aged_out"):
        verdict += f"; {said['aged_out']} more were skipped, because their logs have aged out"
    return Group(Text(f"policy {said['policy']}"), tiers, Text(verdict), Text(money))
