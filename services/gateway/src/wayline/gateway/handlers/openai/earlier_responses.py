"""What a request names of responses before it: the one that it goes on from, and items of others."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from wayline.contracts.chat import TextPart
from wayline.contracts.errors import NotFound
from wayline.contracts.events import Event, JobSubmitted, ToolRequested
from wayline.contracts.jobs import EarlierMessage, JobView
from wayline.gateway.errors import UnsupportedParameter
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.handlers.shared.own_jobs import require_own_job
from wayline.gateway.handlers.shared.read_job import has_ended, read_job
from wayline.gateway.keys import Caller
from wayline.gateway.openai.client_tools import CallId
from wayline.gateway.openai.job_parts import JobPart
from wayline.gateway.openai.responses_answer import MESSAGE, job_and_part
from wayline.gateway.openai.responses_body import ConversationId, InputItem, ResponsesBody
from wayline.gateway.openai.responses_to_job import CALL
from wayline.journal import JobLog

REFERENCE, CALL_ITEM, THINKING = "item_reference", "fc_", "rs_"


async def own_response(gateway: Gateway, caller: Caller, response_id: str) -> JobView:
    """Return the job of a response. Raises NotFound where there is none, or none that the caller may know of."""
    job_id, _ = job_and_part(response_id)
    try:
        await require_own_job(gateway, caller, job_id)
        return await read_job(gateway, caller.tenant, job_id)
    except NotFound:
        raise NotFound("response", response_id) from None


async def previous_of(gateway: Gateway, caller: Caller, body: ResponsesBody) -> JobView | None:
    """Return the job that a request goes on from; None: it names none. Raises NotFound and UnsupportedParameter."""
    if body.previous_response_id is None:
        return None
    if body.conversation is not None:
        raise UnsupportedParameter("conversation", "name it or previous_response_id, not both")
    return await own_response(gateway, caller, body.previous_response_id)


def session_of(body: ResponsesBody, previous: JobView | None) -> str | None:
    """Return the session that a request names; None: it names none, or goes on from what is of none."""
    if body.conversation is not None:
        return body.conversation.id if isinstance(body.conversation, ConversationId) else body.conversation
    return previous.session_id if previous is not None else None


def require_no_open_calls(previous: JobView) -> None:
    """Pass for a job that does not wait for its client's tools. Raises UnsupportedParameter."""
    waiting = previous.waiting_for
    if waiting is not None and waiting.tool_calls:
        names = ", ".join(str(CallId.of(previous.job_id, one)) for one in waiting.tool_calls)
        raise UnsupportedParameter("input", f"there is no function_call_output of {names}", code="missing_result")


async def told_before(gateway: Gateway, caller: Caller, previous: JobView) -> tuple[EarlierMessage, ...]:
    """Return the conversation up to the end of a job that is of no session, itself included."""
    if not has_ended(previous):
        raise UnsupportedParameter("previous_response_id", "it has not ended, and is of no session", code="not_ended")
    first = await JobLog(gateway.bus, caller.tenant, previous.job_id).first()
    job = next(event.job for event in first if isinstance(event, JobSubmitted))
    asked = EarlierMessage(role="user", parts=job.parts())
    answered = EarlierMessage(role="assistant", parts=(TextPart(text=previous.answer),)) if previous.answer else None
    return (*job.history, asked, *((answered,) if answered else ()))


async def with_named_items(gateway: Gateway, caller: Caller, items: Sequence[InputItem]) -> list[InputItem]:
    """Return the items of an input, those in the place of references that these are to. Raises UnsupportedParameter."""
    found: list[InputItem] = []
    logs = _OwnLogs(gateway, caller)
    for place, item in enumerate(items):
        if item.type != REFERENCE:
            found.append(item)
        elif not (item.id or "").startswith(THINKING):
            found.append(await _named(logs, item.id or "", f"input.{place}.id"))
    return found


class _OwnLogs:
    """Reads logs of jobs that the caller may know of; the last one is kept, because items of a job come together."""

    def __init__(self, gateway: Gateway, caller: Caller) -> None:
        self._gateway = gateway
        self._caller = caller
        self._job_id: str | None = None
        self._events: list[Event] = []

    async def events(self, job_id: str) -> Sequence[Event]:
        """Return the events of a job. Raises NotFound."""
        if job_id != self._job_id:
            await require_own_job(self._gateway, self._caller, job_id)
            log = JobLog(self._gateway.bus, self._caller.tenant, job_id)
            self._events, self._job_id = [event async for event in log.read()], job_id
        return self._events


async def _named(logs: _OwnLogs, item_id: str, param: str) -> InputItem:
    call = CallId.read(f"call_{item_id.removeprefix(CALL_ITEM)}") if item_id.startswith(CALL_ITEM) else None
    job_id, number = job_and_part(item_id.removeprefix(MESSAGE)) if call is None else (call.job_id, 1)
    try:
        if call is None and not item_id.startswith(MESSAGE):
            raise NotFound("item", item_id)
        events = await logs.events(job_id)
        item = _message_of(events, number) if call is None else _call_of(events, call)
    except (NotFound, ValueError):
        item = None
    if item is None:
        raise UnsupportedParameter(param, f"there is no item {item_id!r}", code="unknown_item")
    return item


def _message_of(events: Sequence[Event], number: int) -> InputItem | None:
    part = JobPart(number)
    for event in events:
        if part.hear(event):
            return InputItem(role="assistant", content=part.said)
    return InputItem(role="assistant", content=part.view().answer or "") if events else None


def _call_of(events: Sequence[Event], call: CallId) -> InputItem | None:
    for event in events:
        if isinstance(event, ToolRequested) and (event.step, event.call) == (call.step, call.call):
            arguments = orjson.dumps(event.arguments).decode()
            return InputItem(type=CALL, call_id=str(call), name=event.tool, arguments=arguments)
    return None
