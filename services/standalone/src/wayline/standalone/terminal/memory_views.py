"""What is remembered, drawn for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape

from wayline.standalone.terminal.table import details, table


def facts_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row a fact."""
    return table(
        ("fact", "about", "text", "category", "counts", "trust", "said", "used", "since"),
        (_row(one) for one in page["facts"]),
        nothing="nothing is remembered",
    )


def recalled_table(found: dict[str, Any]) -> RenderableType:
    """Draw the facts that fit, best first, each with why."""
    rows = table(
        ("fit", "text", "category", "why", "fact"),
        (
            (
                f"{one['similarity']:.2f}",
                escape(one["text"]),
                one["category"],
                " ".join(f"{name} {value:.2f}" for name, value in one["why"].items()),
                one["fact_id"],
            )
            for one in found["facts"]
        ),
        nothing=found["note"] or "nothing fits",
    )
    beside = [escape(text) for text in (found["degraded"],) if text]
    return Group(rows, f"{found['matched']} of {found['total']} fit", *beside)


def fact_details(fact: dict[str, Any]) -> RenderableType:
    """Draw one fact with where it is from."""
    quoted = fact["quoted"]
    lines = (
        ("fact", f"{fact['fact_id']} version {fact['version']}, {fact['state']}"),
        ("text", escape(fact["text"])),
        ("about", escape(_about(fact))),
        ("category", fact["category"]),
        ("counts", _counts(fact)),
        ("trust", f"{fact['trust']}, confidence {fact['confidence']:.2f}"),
        ("quote", escape(fact["quote"] or "")),
        ("said in", f"{quoted['job_id']} event {quoted['seq']}" if quoted else ""),
        ("stands for", escape("\n".join(map(_summarized, fact.get("stands_for", ()))))),
        ("written by", escape(_writer(fact))),
        ("tainted by", escape(", ".join(fact["tainted_by"]))),
        ("contradicts", ", ".join(fact["conflicts_with"])),
        ("said, used", f"{fact['times']}, {fact['uses']}"),
        ("conversations", escape("\n".join(map(_conversation, fact.get("conversations", ()))))),
        ("since", fact["recorded_at"][:19]),
        ("until", (fact["expires_at"] or "")[:19]),
    )
    return details((name, value) for name, value in lines if value)


def _summarized(one: dict[str, Any]) -> str:
    said = f", said in {one['quoted']['job_id']} event {one['quoted']['seq']}" if one["quoted"] else ""
    return f"{one['fact_id']} v{one['version']}: {one['text']}{said}"


def _conversation(one: dict[str, Any]) -> str:
    counts = ", ".join(f"{what} {one[what]} times" for what in ("said", "used") if one[what])
    return f"{one['conversation']}: {counts}, last {one['last_at'][:19]}"


def steps_table(done: dict[str, Any]) -> RenderableType:
    """Draw what a consolidation did, or would do, a row a fact."""
    rows = table(
        ("what", "fact", "why"),
        [
            *((one["what"], f"{one['fact_id']} v{one['version']}", escape(one["reason"])) for one in done["steps"]),
            *(("linked", one["fact_id"], escape(_named(one))) for one in done.get("links", ())),
        ],
        nothing="there is nothing to do",
    )
    ending = [f"`wayline memory undo {done['run_id']}` brings them back"] if done["run_id"] else []
    return Group(rows, *ending)


def _named(link: dict[str, Any]) -> str:
    own, other = (f"{one['type']}/{one['id']}" for one in (link["subject"], link["other"]))
    return f"what is known of {own} names {other}"


def told_table(told: dict[str, Any]) -> RenderableType:
    """Draw what a job's model was told, a row a fact."""
    rows = table(
        ("fact", "why", "text", "the user's words", "said in", "written by"),
        (_told(one) for one in told["told"]),
        nothing="this job was told nothing of its user",
    )
    gone = [f"not true any more: {', '.join(told['gone'])}"] if told["gone"] else []
    return Group(rows, *gone)


def _told(one: dict[str, Any]) -> tuple[str, ...]:
    fact = one["fact"]
    named = f"{one['fact_id']} v{one['version']}"
    why = f"{one['why']} {one['similarity']:.2f}" if one["why"] == "fits" else one["why"]
    if fact is None:
        return (named, why, "forgotten", "", "", "")
    # A summary has no words of its own: those of the facts that it stands for are behind it.
    behind = [fact, *fact.get("stands_for", ())]
    quotes = "\n".join(one["quote"] for one in behind if one["quote"])
    said = "\n".join(f"{one['quoted']['job_id']}/{one['quoted']['seq']}" for one in behind if one["quoted"])
    return (named, why, escape(fact["text"]), escape(quotes), said, escape(_writer(fact)))


def outcomes(saved: dict[str, Any]) -> RenderableType:
    """Draw what became of each fact."""
    return table(
        ("", "fact", "why", "contradicts"),
        (
            (one["outcome"], one["fact_id"] or "", escape(one["reason"] or ""), ", ".join(one["conflicts_with"]))
            for one in saved["outcomes"]
        ),
        nothing="nothing was saved",
    )


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    return (
        one["fact_id"],
        escape(_about(one)),
        escape(one["text"]),
        one["category"],
        _counts(one),
        one["trust"],
        str(one["times"]),
        str(one["uses"]),
        one["recorded_at"][:19],
    )


def _about(fact: dict[str, Any]) -> str:
    subject = fact["subject"]
    return f"{subject['type']}/{subject['id']}" if subject else fact["user_id"] or ""


def _counts(fact: dict[str, Any]) -> str:
    return fact["tier"] or f"importance {fact['importance']}"


def _writer(fact: dict[str, Any]) -> str:
    if fact["job_id"] is None:
        return fact["source"]
    return f"{fact['agent']} in job {fact['job_id']} step {fact['step']}"
