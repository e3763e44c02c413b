"""Approvals: every decision that a job waits for, with the exact arguments, and those that were made."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.frame import Frame, go, own_address, show
from wayline.console.pages.refusal import reason_of
from wayline.console.render.diffs.card import DiffCard, of_versions
from wayline.console.render.json_text import editable, parsed
from wayline.console.render.schema_fields import NotAValue, SchemaField, arguments_of, fields_again, fields_of

router = APIRouter()
ADDRESS: Final = "/approvals"
TEMPLATE = "approvals.html"
HISTORY_TEMPLATE = "approvals_history.html"
PAGE_SIZE = 50
READ_AT_ONCE: Final = 200
WAITS_MAX: Final = 2_000
"""Calls that are put into order; of more that wait the newest are missing until others are decided."""
SCHEMAS_MAX: Final = 20
"""Tools whose schemas one page asks for; calls of others are edited as JSON."""
CHOSEN_MAX: Final = 50
TAKEN_LOOKS: Final = 20
"""How often the answer to a decision looks whether the list has its call no more."""
TAKEN_EVERY_S: Final = 0.1
ARGUMENT, KIND = "arg.", "kind."


@dataclass(frozen=True, slots=True)
class Review:
    """What a form has that was not sent to the job yet: it is shown again, so that nobody types it twice."""

    job_id: str
    approval_id: str
    arguments: dict[str, Any]
    changes: DiffCard | None
    reason: str = ""
    is_compared: bool = True
    """Whether a person asked what is changed; else the form was refused."""
    whole: str = ""
    """The arguments as JSON, where these were edited as a whole."""
    written: Mapping[str, str] = field(default_factory=dict)
    """What stands in the fields, by the names of the arguments."""

    def is_of(self, wait: dict[str, Any]) -> bool:
        return (wait["job_id"], wait["id"]) == (self.job_id, self.approval_id)


@dataclass(frozen=True, slots=True)
class Approvals:
    """What waits for a person."""

    waits: list[dict[str, Any]]
    next_cursor: str | None
    problem: str = ""
    schemas: dict[str, Any] = field(default_factory=dict)
    """Of the arguments of tools, by their names."""
    review: Review | None = None
    reason: str = ""
    """Of the form that decides several, where it was refused."""
    chosen: frozenset[str] = frozenset()
    """The calls that were chosen in it."""
    cursor: str = ""
    """The place of its first call among all that wait; empty: it is the first page."""

    def fields(self, wait: dict[str, Any]) -> list[SchemaField]:
        """Return the fields of a call's arguments; none: they are edited as JSON."""
        if wait["why"] != "approval":
            return []
        found = fields_of(self.schemas.get(wait["tool"]), self.arguments(wait))
        written = self.review.written if self.review and self.review.is_of(wait) else {}
        return [replace(one, value=written.get(one.name, one.value)) for one in found]

    def arguments(self, wait: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as the form has them."""
        return self.review.arguments if self.review and self.review.is_of(wait) else wait["arguments"]


async def read(
    client: Client, cursor: str | None = None, *, problem: str = "", review: Review | None = None
) -> Approvals:
    """Ask the API for what waits, and for the schemas of its tools; with a review for the page that it stands on."""
    waits = await _oldest_first(client)
    begin = int(cursor) if cursor and cursor.isdecimal() else 0
    if review is not None:
        at = next((place for place, wait in enumerate(waits) if review.is_of(wait)), begin)
        begin = at - at % PAGE_SIZE
    shown, end = waits[begin : begin + PAGE_SIZE], begin + PAGE_SIZE
    schemas = await schemas_of(client, shown)
    return Approvals(shown, str(end) if end < len(waits) else None, problem, schemas, review, cursor=cursor or "")


async def _oldest_first(client: Client) -> list[dict[str, Any]]:
    """Return what waits, what was asked first before the others: a job that is older may have asked later."""
    waits, cursor = list[dict[str, Any]](), None
    while len(waits) < WAITS_MAX:
        page = await client.approvals(sort="oldest", limit=READ_AT_ONCE, cursor=cursor)
        waits += page["approvals"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    return sorted(waits, key=lambda wait: wait["asked_at"] or "")


async def schemas_of(client: Client, waits: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the schemas of the tools whose calls wait; a tool that is gone has none."""
    names = sorted({wait["tool"] for wait in waits if wait["why"] == "approval"})[:SCHEMAS_MAX]
    found = await asyncio.gather(*(_schema(client, name) for name in names))
    return dict(zip(names, found, strict=True))


async def _schema(client: Client, name: str) -> Any:
    try:
        return (await client.get(f"/v1/tools/{quote(name, safe='')}"))["definition"]["input_schema"]
    except ApiError:
        return None


async def _wait_until_taken(client: Client, decided: set[tuple[str, str]]) -> None:
    """Return once no call waits that was decided, or after some time: its job reads the decision a moment later."""
    jobs = sorted({job_id for job_id, _ in decided})
    # The decision is sent: a list that cannot be read now is told of by the page that shows it.
    with suppress(ApiError):
        for _ in range(TAKEN_LOOKS):
            waits = (await client.approvals(job_id=jobs, limit=READ_AT_ONCE))["approvals"]
            if not any((wait["job_id"], wait["id"]) in decided for wait in waits):
                return
            await asyncio.sleep(TAKEN_EVERY_S)


@router.get("/approvals")
async def approvals(
    request: Request, visitor: VisitorDependency, cursor: Annotated[str | None, Query(max_length=6)] = None
) -> HTMLResponse:
    """Show what waits for a person."""
    frame = Frame.of(request, visitor, title="Approvals", section="/approvals")
    return await show(request, TEMPLATE, frame, page=await read(visitor.client, cursor))


@router.get("/approvals/history")
async def history(
    request: Request, visitor: VisitorDependency, cursor: Annotated[str | None, Query()] = None
) -> HTMLResponse:
    """Show what was decided, by whom and when."""
    frame = Frame.of(request, visitor, title="Decisions", section="/approvals")
    page = await visitor.client.approvals(decided=True, limit=PAGE_SIZE, cursor=cursor)
    return await show(request, HISTORY_TEMPLATE, frame, page=page)


class NotAnObject(ValueError):
    """Arguments that were edited are no JSON object."""


def decision_of(*, decision: str, arguments: str, shown: str, reason: str, call_hash: str = "") -> dict[str, Any]:
    """Return the decision that a form makes, bound to the call that was shown.

    Arguments are sent only where they were changed. Raises NotAnObject.
    """
    bound = {"hash": call_hash} if call_hash else {}
    if decision == "deny":
        return {"decision": "deny", "reason": reason, **bound}
    changed: Any = None
    try:
        if arguments and parsed(arguments) != parsed(shown or "null"):
            changed = parsed(arguments)
    except ValueError as error:
        raise NotAnObject(f"the arguments are not JSON: {error}") from None
    if changed is not None and not isinstance(changed, dict):
        raise NotAnObject("the arguments are not a JSON object")
    return {"decision": "approve", **bound} | ({} if changed is None else {"arguments": changed})


def edited(form: Any) -> str:
    """Return the arguments that a form sends as JSON: by its fields, or edited as a whole. Raises NotAValue."""
    whole, shown = field_of(form, "arguments"), field_of(form, "shown")
    written = written_in(form)
    kinds = {name.removeprefix(KIND): value for name, value in form.items() if name.startswith(KIND)}
    if not kinds or _value(whole) != _value(shown):
        return whole
    arguments = _value(shown)
    if not isinstance(arguments, dict):
        return whole
    made = arguments_of(fields_again(kinds, arguments), written, arguments)
    return whole if made == arguments else json.dumps(made)


def written_in(form: Any) -> dict[str, str]:
    """Return what stands in the fields of a form, by the names of the arguments."""
    return {
        name.removeprefix(ARGUMENT): value
        for name, value in form.items()
        if name.startswith(ARGUMENT) and isinstance(value, str)
    }


def review_of(form: Any, job_id: str, approval_id: str) -> Review:
    """Return a form as it was sent, to be shown again."""
    whole, asked = field_of(form, "arguments"), _value(field_of(form, "shown"))
    is_edited = _value(whole) != asked
    return Review(
        job_id,
        approval_id,
        asked if isinstance(asked, dict) else {},
        None,
        field_of(form, "reason"),
        is_compared=False,
        whole=whole if is_edited else "",
        written={} if is_edited else written_in(form),
    )


def _value(text: str) -> Any:
    try:
        return parsed(text or "null")
    except ValueError:
        return text


@router.post("/approvals/several")
async def decide_several(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Approve or deny the calls that were chosen, as they are."""
    decision, problems = field_of(form, "decision"), list[str]()
    decided = set[tuple[str, str]]()
    chosen = [str(value) for value in form.getlist("wait")]
    if not chosen or decision not in ("approve", "deny"):
        problems.append("Choose calls by the boxes before them, then approve or deny them.")
    elif len(chosen) > CHOSEN_MAX:
        problems.append(f"These are {len(chosen)} calls: choose at most {CHOSEN_MAX} at once.")
    for value in () if problems else tuple(chosen):
        job_id, _, rest = value.partition("/")
        approval_id, _, call_hash = rest.rpartition("/")
        bound = {"hash": call_hash} if call_hash else {}
        said = {"decision": decision} | ({"reason": field_of(form, "reason")} if decision == "deny" else {})
        try:
            await visitor.client.decide(quote(job_id, safe=""), quote(approval_id, safe=""), said | bound)
            decided.add((job_id, approval_id))
        except ApiError as error:
            problems.append(f"{job_id}: {error}")
    if decided:
        await _wait_until_taken(visitor.client, decided)
    if not problems:
        return go(ADDRESS, done="decided")
    frame = Frame.of(request, visitor, title="Approvals", section="/approvals")
    cursor = field_of(form, "cursor")
    page = await read(visitor.client, cursor or None, problem="; ".join(problems))
    page = replace(page, reason=field_of(form, "reason"), chosen=frozenset(chosen))
    return await show(request, TEMPLATE, frame, status=422, page=page)


@router.post("/approvals/{job_id}/{approval_id}")
async def decide(
    request: Request, visitor: VisitorDependency, form: PostedForm, job_id: str, approval_id: str
) -> Response:
    """Approve or deny a call that waits, or show what was changed in its arguments."""
    review, problem = review_of(form, job_id, approval_id), ""
    try:
        arguments = edited(form)
        decision = decision_of(
            decision="deny" if field_of(form, "decision") == "deny" else "approve",
            arguments=arguments,
            shown=field_of(form, "shown"),
            reason=field_of(form, "reason"),
            call_hash=field_of(form, "hash"),
        )
        if field_of(form, "decision") not in ("approve", "deny"):
            asked = _value(field_of(form, "shown"))
            wanted = decision.get("arguments", asked)
            changes = of_versions(editable(asked), editable(wanted), name="arguments")
            review = replace(review, arguments=wanted, changes=changes, is_compared=True)
        else:
            await visitor.client.decide(quote(job_id, safe=""), quote(approval_id, safe=""), decision)
            then = own_address(field_of(form, "then") or ADDRESS)
            if then == ADDRESS:
                await _wait_until_taken(visitor.client, {(job_id, approval_id)})
            return go(then, done="decided")
    except (NotAnObject, NotAValue, ApiError) as error:
        problem = f"{job_id}: {reason_of(error) if isinstance(error, ApiError) else error}"
    frame = Frame.of(request, visitor, title="Approvals", section="/approvals")
    page = await read(visitor.client, problem=problem, review=review)
    return await show(request, TEMPLATE, frame, status=422 if problem else 200, page=page)
