"""Lists of passages, documents, agents, tools, tenants, settings, keys and dead letters, drawn for a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from wayline.standalone.terminal.job_views import QUOTE_MAX, status
from wayline.standalone.terminal.money_views import usd
from wayline.standalone.terminal.table import table


def passages(result: dict[str, Any]) -> RenderableType:
    """Draw the passages of a search, best first."""
    parts: list[RenderableType] = []
    for number, hit in enumerate(result["hits"], 1):
        parts.append(Text.assemble(f"[{number}] ", (hit["document"], "cyan"), (f"  {hit['score']:.4f}", "dim")))
        parts.append(Text(f"    {' '.join(hit['text'].split())[:QUOTE_MAX]}"))
    if not result["hits"]:
        parts.append(Text(result["note"] or "nothing was found"))
    elif result["note"]:
        parts.append(Text(result["note"], style="dim"))
    for missing in result.get("degraded", ()):
        parts.append(Text(f"without {missing['leg']}: {missing['detail']}", style="yellow"))
    return Group(*parts)


def vector_sets_table(found: dict[str, Any]) -> RenderableType:
    """Draw one row for each set of vectors."""
    return table(
        ("set", "model", "state", "passages", "waiting", "overlap"),
        (
            (
                str(one["set_id"]),
                escape(one["model"]),
                status(one["state"]) + (f": {escape(one['error'])}" if one["error"] else ""),
                f"{one['passages']} of {one['passages_in_all']}",
                f"{one['documents_waiting']} documents",
                "" if one["overlap"] is None else f"{one['overlap']:.0%} of {one['queries']} queries",
            )
            for one in found["sets"]
        ),
        nothing=f"no set yet: the first document makes one. Models here: {', '.join(found['models'])}",
    )


def chunks_done(document: Mapping[str, Any]) -> str:
    """Return how many of a document's chunks are done, of how many where that is not all."""
    done, total = document["chunks_done"], document["chunks_total"]
    embedded = document.get("chunks_embedded")
    if embedded is not None and document["status"] == "ready" and embedded < done:
        return f"{done}, {embedded} embedded"
    return str(done) if total in (None, done) else f"{done} of {total}"


def documents_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row for each document."""
    return table(
        ("document", "name", "status", "chunks", "bytes"),
        (
            (
                document["document_id"],
                escape(document["name"]),
                status(document["status"]) + (f": {escape(document['error'])}" if document["error"] else ""),
                chunks_done(document),
                str(document["size_bytes"]),
            )
            for document in page["documents"]
        ),
        nothing="no documents yet: `wayline ingest PATH` adds some",
    )


CHUNK_SHOWN_CHARS = 80


def chunks_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row for each passage of a document."""
    return table(
        ("chunk", "page", "under", "embedded", "text"),
        (
            (
                escape(chunk["chunk_id"]),
                "" if chunk["page"] is None else str(chunk["page"]),
                escape(" > ".join(chunk["headings"])),
                "yes" if chunk["embedded"] else "no",
                escape(" ".join(chunk["text"].split())[:CHUNK_SHOWN_CHARS]),
            )
            for chunk in page["chunks"]
        ),
        nothing="no passages: it is not read yet, or has no text",
    )


def agents_table(agents: dict[str, Any]) -> RenderableType:
    """Draw one row for each agent."""
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
    """Draw one row for each tool."""
    return table(
        ("tool", "server", "effect", "what it does"),
        (
            (escape(tool["name"]), escape(tool["server"]), tool["effect"], escape(tool["description"].split("\n")[0]))
            for tool in tools["tools"]
        ),
        nothing="no tools",
    )


def found_tools(found: dict[str, Any]) -> RenderableType:
    """Draw the tools that fit a search, the best first, and what an agent has or may not use."""
    rows = table(
        ("tool", "score", "server", "what it does"),
        (
            (
                escape(one["tool"]["name"]),
                f"{one['score']:.2f}",
                escape(one["tool"]["server"]),
                escape(one["tool"]["description"].split("\n")[0]),
            )
            for one in found["tools"]
        ),
        nothing=f"none of {found['searched']} tools fits",
    )
    lines = [
        Text(f"{one['name']} fits too, but cannot be called: {one['why']}. To enable it: {one['how']}", style="dim")
        for one in found.get("unusable", ())
    ]
    if not lines and found["disabled"]:
        # A gateway of the version before says no more.
        lines = [Text(f"Fits too, but the agent may not use it: {', '.join(found['disabled'])}", style="dim")]
    return Group(rows, *lines) if lines else rows


def tool_usage_table(found: dict[str, Any]) -> RenderableType:
    """Draw in how many of an agent's jobs each tool was called, and what to save as the agent's `tools`."""
    rows = table(
        ("agent", "tool", "jobs", "of"),
        (
            (escape(one["agent"]), escape(tool["tool"]), str(tool["jobs"]), str(one["jobs"]))
            for one in found["agents"]
            for tool in one["tools"]
        ),
        nothing="no job has called a tool",
    )
    proposals = [
        Text(f'{one["agent"]}: "tools": {json.dumps(one["tools_proposed"])}')
        for one in found["agents"]
        if one.get("tools_proposed")
    ]
    return Group(rows, *proposals) if proposals else rows


def versions_table(history: dict[str, Any]) -> RenderableType:
    """Draw one row for each version of an agent, newest first."""
    return table(
        ("version", "labels", "saved", "by", "changed"),
        (
            (
                str(one["version"]),
                ", ".join(one.get("labels", ())),
                str(one["saved_at"])[:19],
                escape(one["saved_by"]) or "-",
                ", ".join(one["changed"]) + (" (deleted since)" if one["retired_at"] else ""),
            )
            for one in history["versions"]
        ),
        nothing="no versions",
    )


def agent_check(checked: dict[str, Any]) -> RenderableType:
    """Draw what an agent would be."""
    lines = [f"problem: {problem['message']}" for problem in checked["problems"]]
    lines += [f"warning: {warning}" for warning in checked["warnings"]]
    lines.append(f"its instructions have about {checked['instructions_tokens']} tokens")
    if checked["tools"] is not None:
        lines.append(f"it may use {checked['tools']} tools, whose definitions have about {checked['tools_tokens']}")
    lines += [f"{slot}: {model}" for slot, model in checked["slots"].items()]
    if (route := checked["route"]) is not None:
        cost = route["estimated_cost_usd"]
        lines.append(
            f"a short job runs on {route['provider']}/{route['model']} ({route['reason']}), for about "
            f"{'an unknown price' if cost is None else usd(cost)}"
        )
    return Text("\n".join(lines))


def tenants_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row for each tenant."""
    return table(
        ("tenant", "created", "state", "weight"),
        (
            (
                tenant["tenant"],
                str(tenant["created_at"])[:19],
                f"disabled: {escape(tenant['disabled_reason'] or 'no reason given')}"
                if tenant["disabled_at"]
                else "ok",
                # A gateway of 0.1.0 knows no weights.
                str(tenant.get("weight", 1)),
            )
            for tenant in page["tenants"]
        ),
        nothing="no tenants",
    )


def keys_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row for each API key."""
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
        nothing="no API keys: every caller on this machine acts as tenant default",
    )


def credentials_table(credentials: list[dict[str, Any]]) -> RenderableType:
    """Draw one row for each credential of the bus."""
    return table(
        ("name", "tenant", "scopes", "created", "public key"),
        (
            (one["name"], one["tenant"], ",".join(one["scopes"]), one["created_at"][:10], one["public_key"])
            for one in credentials
        ),
        nothing="no credentials: every client on this machine is one of tenant default",
    )


def new_key(key: dict[str, Any]) -> RenderableType:
    """Draw a new API key, which is shown only once."""
    return Text(
        f"{key['key']}\n\nkey {key['id']} of tenant {key['tenant']} ({', '.join(key['scopes'])}), expires "
        f"{str(key['expires_at'] or 'never')[:19]}. It is not shown again: keep it, and send it as "
        "`Authorization: Bearer …` or in WAYLINE_API_KEY. Every request needs a key now."
    )


def dead_letters_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row for each dead letter."""
    return table(
        ("number", "at", "code", "subject", "reason"),
        (
            (str(dead["sequence"]), str(dead["at"])[:19], dead["code"], escape(dead["subject"]), escape(dead["reason"]))
            for dead in page["dead_letters"]
        ),
        nothing="no dead letters",
    )


def dismissed_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row for each dismissed dead letter."""
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


def backtest_table(summary: dict[str, Any]) -> RenderableType:
    """Draw which tiers and costs another policy changes."""
    rows = ((row["was"], row["now"], str(row["jobs"])) for row in summary["tiers"])
    tiers = table(("was", "now", "jobs"), rows, nothing="no jobs")
    verdict = f"{summary['same']} of {summary['jobs']} jobs keep their whole route"
    verdict += "".join(f"; {jobs} were decided by {policy or 'none'}" for policy, jobs in summary["decided_by"].items())
    money = f"{usd(summary['was_usd'])} became {usd(summary['now_usd'])}"
    if summary["unknown_cost"]:
        money += f", without {summary['unknown_cost']} jobs whose cost is unknown"
    if summary.get("aged_out"):
        verdict += f"; {summary['aged_out']} more were skipped, because their logs have expired"
    return Group(Text(f"policy {summary['policy']}"), tiers, Text(verdict), Text(money))


_NO_SETTINGS = frozenset({"defaults", "updated_at"})
"""Fields of the answer that are no settings."""


def settings_table(settings: Mapping[str, Any]) -> RenderableType:
    """Draw every setting with its value, and whether it is the default."""
    rows = (
        (name, escape(_setting(value)), "default" if name in settings["defaults"] else "")
        for name, value in settings.items()
        if name not in _NO_SETTINGS
    )
    return table(("SETTING", "VALUE", ""), rows, nothing="no settings")


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return "-"
    return ",".join(value) if isinstance(value, list) else str(value)
