"""The commands `wayline memory` and `wayline insights`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from wayline.standalone.commands.arguments import fail
from wayline.standalone.commands.output import AsJson, answer

app = typer.Typer(help="What is remembered of users.", no_args_is_help=True)
insights = typer.Typer(help="What is remembered of clients, companies and things.", no_args_is_help=True)

User = Annotated[str, typer.Argument(metavar="USER", help="The user's id.")]
FactId = Annotated[str, typer.Argument(metavar="FACT", help="The id of a fact.")]
Subject = Annotated[str, typer.Argument(metavar="TYPE/ID", help="The subject, for instance client/acme.")]
State = Annotated[
    Literal["active", "quarantined", "superseded", "expired", "rejected"],
    typer.Option(help="quarantined: those that wait for a person."),
]
Reason = Annotated[str | None, typer.Option(help="Why, for those who ask later.")]
Limit = Annotated[int, typer.Option(min=1, max=500)]
Cursor = Annotated[str | None, typer.Option(help="next_cursor of the page before.")]
MEMORIES, INSIGHTS = "/v1/memories", "/v1/insights"


@app.command("list")
def list_memories(
    user: Annotated[str | None, typer.Argument(metavar="[USER]", help="Left out: of all users.")] = None,
    *,
    state: State = "active",
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List memories, the newest first."""
    from wayline.standalone.terminal.memory_views import facts_table

    answer(
        lambda client: client.get(MEMORIES, user_id=user, state=state, limit=limit, cursor=cursor),
        as_json=as_json,
        draw=facts_table,
    )


@app.command()
def show(fact: FactId, as_json: AsJson = False) -> None:
    """Show a memory: the words it rests on, where they were said, and what contradicts it."""
    from wayline.standalone.terminal.memory_views import fact_details

    answer(lambda client: client.get(f"{MEMORIES}/{fact}"), as_json=as_json, draw=fact_details)


@app.command()
def recall(
    user: User,
    terms: Annotated[list[str] | None, typer.Argument(metavar="[TERM]…", help="What to look for.")] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 10,
    as_json: AsJson = False,
) -> None:
    """Find what is remembered of a user, and why each was found."""
    from wayline.standalone.terminal.memory_views import recalled_table

    body = {"user_id": user, "search_terms": terms or [], "limit": limit}
    answer(lambda client: client.post(f"{MEMORIES}/recall", body), as_json=as_json, draw=recalled_table)


@app.command()
def save(
    user: User,
    text: Annotated[str, typer.Argument(help="One sentence, such as 'Lives in Bonn.'")],
    *,
    category: Annotated[Literal["profile", "preference", "technical", "project"], typer.Option()] = "profile",
    tier: Annotated[Literal["core", "important", "context"], typer.Option(help="How long it counts.")] = "important",
    as_json: AsJson = False,
) -> None:
    """Remember a fact about a user."""
    from wayline.standalone.terminal.memory_views import outcomes

    body = {"user_id": user, "facts": [{"text": text, "category": category, "tier": tier}]}
    answer(lambda client: client.post(MEMORIES, body), as_json=as_json, draw=outcomes)


@app.command()
def release(fact: FactId, reason: Reason = None, as_json: AsJson = False) -> None:
    """Let a quarantined memory count, as your word."""
    _decide(MEMORIES, fact, "release", reason, as_json=as_json)


@app.command()
def reject(fact: FactId, reason: Reason = None, as_json: AsJson = False) -> None:
    """Refuse a quarantined memory for good."""
    _decide(MEMORIES, fact, "reject", reason, as_json=as_json)


@app.command()
def consolidate(
    user: Annotated[str | None, typer.Argument(metavar="[USER]", help="Left out: all users and subjects.")] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say only what would be done.")] = False,
    as_json: AsJson = False,
) -> None:
    """Expire, merge and demote facts, as happens by itself every hour."""
    from wayline.standalone.terminal.memory_views import steps_table

    body = {"user_id": user, "dry_run": dry_run}
    answer(lambda client: client.post(f"{MEMORIES}/consolidate", body), as_json=as_json, draw=steps_table)


@app.command()
def summarize(
    user: User,
    *,
    agent: Annotated[str, typer.Option(help="By whose models, and within whose budget.")] = "assistant",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say only what would be done; it is paid for.")] = False,
    as_json: AsJson = False,
) -> None:
    """Submit the job in which a helper model writes one fact for several that belong together."""
    body = {"user_id": user, "agent": agent, "dry_run": dry_run}
    answer(
        lambda client: client.post(f"{MEMORIES}/summarize", body),
        as_json=as_json,
        draw=lambda one: f"{one['job_id']} is submitted; wayline jobs show {one['job_id']} says what became of it",
    )


@app.command()
def undo(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The id of a consolidation.")], as_json: AsJson = False
) -> None:
    """Bring back what a consolidation took away."""
    answer(
        lambda client: client.post(f"{MEMORIES}/consolidations/{run}/undo"),
        as_json=as_json,
        draw=lambda one: f"{one['undone']} undone, {one['skipped']} changed since",
    )


@app.command()
def why(job: Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")], as_json: AsJson = False) -> None:
    """Show what a job's model was told of its user, why, and which words of the user each fact rests on."""
    from wayline.standalone.terminal.memory_views import told_table

    answer(lambda client: client.get(f"/v1/jobs/{job}/memories"), as_json=as_json, draw=told_table)


@app.command()
def delete(fact: FactId, as_json: AsJson = False) -> None:
    """Delete a memory with its versions."""
    answer(lambda client: client.delete(f"{MEMORIES}/{fact}"), as_json=as_json, draw=lambda _: f"{fact} is deleted")


@insights.command("list")
def list_insights(subject: Subject, *, state: State = "active", limit: Limit = 20, as_json: AsJson = False) -> None:
    """List the insights about a subject, the most important first."""
    from wayline.standalone.terminal.memory_views import facts_table

    kind, name = _subject(subject)
    answer(
        lambda client: client.get(INSIGHTS, subject_type=kind, subject_id=name, state=state, limit=limit),
        as_json=as_json,
        draw=facts_table,
    )


@insights.command("recall")
def recall_insights(
    subject: Subject,
    query: Annotated[str, typer.Argument(help="What you want to know.")] = "",
    *,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 5,
    as_json: AsJson = False,
) -> None:
    """Find what is known about a subject, and why each was found."""
    from wayline.standalone.terminal.memory_views import recalled_table

    kind, name = _subject(subject)
    body = {"subject": {"type": kind, "id": name}, "query": query, "limit": limit}
    answer(lambda client: client.post(f"{INSIGHTS}/recall", body), as_json=as_json, draw=recalled_table)


@insights.command("add")
def add_insight(
    subject: Subject,
    text: Annotated[str, typer.Argument(help="One sentence, such as 'Client loves sea views.'")],
    *,
    category: Annotated[
        Literal["preference", "objection", "timeline", "motivation", "relationship"], typer.Option()
    ] = "preference",
    importance: Annotated[int, typer.Option(min=1, max=10)] = 5,
    as_json: AsJson = False,
) -> None:
    """Remember something about a subject."""
    from wayline.standalone.terminal.memory_views import outcomes

    kind, name = _subject(subject)
    fact = {"text": text, "category": category, "importance": importance}
    body = {"subject": {"type": kind, "id": name}, "facts": [fact]}
    answer(lambda client: client.post(INSIGHTS, body), as_json=as_json, draw=outcomes)


@insights.command("release")
def release_insight(fact: FactId, reason: Reason = None, as_json: AsJson = False) -> None:
    """Let a quarantined insight count, as your word."""
    _decide(INSIGHTS, fact, "release", reason, as_json=as_json)


@insights.command("reject")
def reject_insight(fact: FactId, reason: Reason = None, as_json: AsJson = False) -> None:
    """Refuse a quarantined insight for good."""
    _decide(INSIGHTS, fact, "reject", reason, as_json=as_json)


@insights.command("delete")
def delete_insight(fact: FactId, as_json: AsJson = False) -> None:
    """Delete an insight with its versions."""
    answer(lambda client: client.delete(f"{INSIGHTS}/{fact}"), as_json=as_json, draw=lambda _: f"{fact} is deleted")


def _decide(path: str, fact: str, decision: str, reason: str | None, *, as_json: bool) -> None:
    body: dict[str, Any] = {} if reason is None else {"reason": reason}
    answer(
        lambda client: client.post(f"{path}/{fact}/{decision}", body),
        as_json=as_json,
        draw=lambda one: f"{fact} is {one['state']}",
    )


def _subject(text: str) -> tuple[str, str]:
    kind, _, name = text.partition("/")
    if not kind or not name:
        fail(f"{text!r} is no subject: write its type and its id, such as client/acme")
    return kind, name
