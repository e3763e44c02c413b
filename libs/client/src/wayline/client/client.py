"""A client of the gateway: requests, submissions, event streams and pages."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import httpx2

from wayline.client.address import Address
from wayline.client.errors import ApiError, NotReachable, NotWayline
from wayline.client.park_reasons import park_reason

TIMEOUT_S = 70.0
"""Longer than the gateway's longest `?wait=`."""
SILENCE_MAX_S = 60.0
"""An event stream sends something every 15 s, if only a comment to show that it is alive."""
RECONNECTS_MAX = 20
RECONNECT_AFTER_S = 0.5
TERMINAL = frozenset({"job.completed", "job.failed", "job.cancelled"})

Parameter: TypeAlias = str | float | bool | list[str] | None
"""One parameter of a query; a list is one for each of its values."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """A resource as it was read, and its entity tag, which `If-Match` names to change only what was read."""

    body: Any
    tag: str | None


class Client:
    """A connected client. Every method raises ApiError with the gateway's answer."""

    def __init__(self, address: Address) -> None:
        self.address = address
        headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
        # Without the environment's proxies: the address is the gateway's own.
        self._http = httpx2.AsyncClient(base_url=address.url, headers=headers, timeout=TIMEOUT_S, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def get(self, path: str, **params: Parameter) -> Any:
        """Get a resource; parameters that are None are left out."""
        return await self._send("GET", path, params=_given(params))

    async def tagged(self, path: str, **params: Parameter) -> Tagged:
        """Get a resource with its entity tag; None where it has none."""
        response = await self._response("GET", path, params=_given(params))
        return Tagged(_body(response), response.headers.get("ETag"))

    async def post(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        file: tuple[str, bytes] | tuple[str, Any, str] | None = None,
    ) -> Any:
        """Post JSON, or a file with the body as its form's fields; an open file is read in blocks."""
        if file is not None:
            return await self._send("POST", path, files={"file": file}, data=body, params=params)
        return await self._send("POST", path, json=body, headers=headers, params=params)

    async def put(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Put a resource; `headers`: `If-Match` or `If-None-Match`, where it is to be as it was read."""
        return await self._send("PUT", path, json=body, params=params, headers=headers)

    async def patch(self, path: str, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None) -> Any:
        """Change some fields of a resource; `headers`: `If-Match`, where it is to be as it was read."""
        return await self._send("PATCH", path, json=body, headers=headers)

    async def delete(self, path: str, *, headers: Mapping[str, str] | None = None) -> Any:
        """Delete a resource; `headers`: `If-Match`, where it is to be as it was read."""
        return await self._send("DELETE", path, headers=headers)

    async def pages(self, path: str, **params: Parameter) -> AsyncGenerator[dict[str, Any]]:
        """Yield the pages of a list, following `next_cursor` to the last."""
        cursor: str | None = None
        while True:
            page = await self.get(path, cursor=cursor, **params)
            yield page
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    async def whole(self, path: str, name: str, **params: Parameter) -> dict[str, Any]:
        """Get a list whole: the first page of it, with what the others hold under `name`."""
        whole: dict[str, Any] = {}
        async for page in self.pages(path, **params):
            whole = whole or {**page, name: []}
            whole[name] += page[name]
        return {**whole, "next_cursor": None}

    async def download(self, path: str, **params: Parameter) -> AsyncGenerator[bytes]:
        """Yield a file as it comes. Raises NotReachable where its transfer breaks off."""
        given = _given(params)
        timeout = httpx2.Timeout(TIMEOUT_S, read=SILENCE_MAX_S)
        try:
            async with self._http.stream("GET", path, params=given, timeout=timeout) as response:
                if not response.is_success:
                    await response.aread()
                    raise _refused(response)
                async for piece in response.aiter_bytes():
                    yield piece
        except httpx2.TransportError as error:
            raise NotReachable(url=self.address.url, cause=_cause(error)) from None

    async def submit(
        self, job: Mapping[str, Any], *, wait_s: float | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Submit a job; with `wait_s` the answer comes at its end, at the latest after so long.

        `key`: the same where the same submission may be sent twice; else it has one of its own.
        """
        # A key of its own, so that a submission whose answer was lost makes no second job when it is sent again.
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        return await self.post("/v1/jobs", job, headers=headers, params=None if wait_s is None else {"wait": wait_s})

    async def job(self, job_id: str) -> dict[str, Any]:
        """Get a job as it is now."""
        return await self.get(f"/v1/jobs/{job_id}")

    async def newest_session(self, *, agent: str, user_id: str | None = None) -> str | None:
        """Get the id of the session that was used last with an agent and by a user; None: there is none."""
        page = await self.get("/v1/sessions", agent=agent, user_id=user_id, limit=1)
        return page["sessions"][0]["session_id"] if page["sessions"] else None

    async def run_schedule(self, name: str) -> dict[str, Any]:
        """Submit a schedule's job now."""
        headers = {"Idempotency-Key": secrets.token_hex(16)}
        return await self.post(f"/v1/schedules/{name}/run", headers=headers)

    async def put_webhook(self, name: str, config: Mapping[str, Any], *, create: bool = False) -> dict[str, Any]:
        """Save a webhook; a new one is answered with its secret. `create`: refuse where there is one of this name."""
        send = self.post if create else self.put
        return await send(f"/v1/webhooks/{name}", config)

    async def test_webhook(self, name: str) -> dict[str, Any]:
        """Have a test event sent, and get what was answered."""
        return await self.post(f"/v1/webhooks/{name}/test")

    async def webhook_deliveries(self, name: str, **params: Parameter) -> dict[str, Any]:
        """Get a page of what was sent, newest first: `status`, `job_id`, `limit`, `cursor`."""
        return await self.get(f"/v1/webhooks/{name}/deliveries", **params)

    async def redeliver(self, name: str, delivery_id: str | None = None, *, since: str | None = None) -> dict[str, Any]:
        """Have one delivery sent again, or those that were given up."""
        if delivery_id is not None:
            return await self.post(f"/v1/webhooks/{name}/deliveries/{delivery_id}/redeliver")
        return await self.post(f"/v1/webhooks/{name}/redeliver", {} if since is None else {"since": since})

    async def approvals(self, **params: Parameter) -> dict[str, Any]:
        """Get a page of what waits for a person's decision."""
        return await self.get("/v1/approvals", **params)

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], *, key: str | None = None, user_id: str | None = None
    ) -> dict[str, Any]:
        """Call a tool once, without a job; the same `key` with the same arguments is the same call.

        A tool that does more than read, or charges, needs a key. `status` `in_progress`: ask again with it.
        """
        headers = None if key is None else {"Idempotency-Key": key}
        body = {"arguments": dict(arguments), **({} if user_id is None else {"user_id": user_id})}
        return await self.post(f"/v1/tools/{name}/call", body, headers=headers)

    async def decide(self, job_id: str, approval_id: str, decision: Mapping[str, Any]) -> dict[str, Any]:
        """Approve or deny a tool call that waits: `{"decision": "approve"}`, with `arguments` or a `reason`."""
        return await self.post(f"/v1/jobs/{job_id}/approvals/{approval_id}", decision)

    async def give_results(self, job_id: str, *results: Mapping[str, Any]) -> dict[str, Any]:
        """Give a job what its caller's own tools returned: `{"key": …, "content": …}`, with `failed` where one did."""
        return await self.post(f"/v1/jobs/{job_id}/tool_results", {"results": list(results)})

    async def log(self, job_id: str, *, after: int = 0) -> list[dict[str, Any]]:
        """Get the events of a job so far; of those only what is past a `seq`."""
        headers, params = {"Accept": "application/json"}, {"after": after} if after else None
        return await self._send("GET", f"/v1/jobs/{job_id}/events", headers=headers, params=params)

    async def events(self, job_id: str, after: int = 0, *, progress: bool = False) -> AsyncGenerator[dict[str, Any]]:
        """Yield a job's events until its end, each once, over as many connections as it takes.

        Deltas have no `seq`, and neither have `progress` and `queue`, which come where they are asked for and may come
        twice.
        """
        last, failures = after, 0
        while True:
            try:
                async with aclosing(self._events_of_one_connection(job_id, last, progress)) as events:
                    async for event in events:
                        failures, last = 0, event.get("seq", last)
                        yield event
                        if event["type"] in TERMINAL:
                            return
            except _NothingFollows:
                return
            except httpx2.TransportError as error:
                failures += 1
                if failures > RECONNECTS_MAX:
                    raise NotReachable(url=self.address.url, cause=_cause(error)) from None
            await asyncio.sleep(RECONNECT_AFTER_S)

    async def tenant_events(self, **params: Parameter) -> AsyncGenerator[dict[str, Any]]:
        """Yield what happens to all jobs of the tenant, without end, each event once, also over new connections.

        `params` are those of `GET /v1/events`. What was missed for more than an hour is said by an event `gap`.
        """
        given = _given(params)
        last: str | None = None
        failures = 0
        while True:
            headers = {} if last is None else {"Last-Event-ID": last}
            timeout = httpx2.Timeout(TIMEOUT_S, read=SILENCE_MAX_S)
            try:
                async with self._http.sse("/v1/events", params=given, headers=headers, timeout=timeout) as source:
                    if source.response.status_code >= 400:
                        await source.response.aread()
                        raise _refused(source.response)
                    async for event in source:
                        failures, last = 0, event.id or last
                        if event.data:
                            yield {"type": event.event, **json.loads(event.data)}
            except httpx2.TransportError as error:
                failures += 1
                if failures > RECONNECTS_MAX:
                    raise NotReachable(url=self.address.url, cause=_cause(error)) from None
            await asyncio.sleep(RECONNECT_AFTER_S)

    async def follow(
        self, job_id: str, *, on_event: Callable[[dict[str, Any]], None] | None = None, progress: bool = False
    ) -> dict[str, Any]:
        """Follow a job until it has ended or waits for a person, and return the job; `on_event` gets each event."""
        async with aclosing(self.events(job_id, progress=progress)) as events:
            async for event in events:
                if on_event is not None:
                    on_event(event)
                if event["type"] == "job.parked" and park_reason(event["waiting"]["why"]).ended_by == "person":
                    job = await self.job(job_id)
                    # It may have been woken since, or this is an old event of a job that went on long ago.
                    if job["status"] == "parked":
                        return job
        return await self.job(job_id)

    async def _events_of_one_connection(
        self, job_id: str, after: int, progress: bool
    ) -> AsyncGenerator[dict[str, Any]]:
        timeout = httpx2.Timeout(TIMEOUT_S, read=SILENCE_MAX_S)
        headers = {"Last-Event-ID": str(after)}
        path = f"/v1/jobs/{job_id}/events{'?progress=true' if progress else ''}"
        async with self._http.sse(path, headers=headers, timeout=timeout, max_event_size=None) as source:
            if source.response.status_code >= 400:
                await source.response.aread()
                raise _refused(source.response)
            if source.response.status_code == 204:
                raise _NothingFollows
            async for event in source:
                fields: dict[str, Any] = json.loads(event.data)
                yield {"type": event.event, **fields}

    async def _send(self, method: str, path: str, **request: Any) -> Any:
        return _body(await self._response(method, path, **request))

    async def _response(self, method: str, path: str, **request: Any) -> httpx2.Response:
        try:
            response = await self._http.request(method, path, **request)
        except httpx2.TransportError as error:
            raise NotReachable(url=self.address.url, cause=_cause(error)) from None
        if not response.is_success:
            raise _refused(response)
        return response


class _NothingFollows(Exception):
    """A job has ended, and all of its events were read."""


def _given(params: Mapping[str, Parameter]) -> dict[str, Parameter]:
    return {name: value for name, value in params.items() if value is not None}


def _body(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        raise _not_wayline(response) from None


def _refused(response: httpx2.Response) -> ApiError:
    """Read a refusal's problem."""
    try:
        problem = response.json()
        return ApiError(problem["detail"], code=problem["code"], status=response.status_code)
    except (ValueError, KeyError, TypeError):
        return _not_wayline(response)


def _not_wayline(response: httpx2.Response) -> NotWayline:
    return NotWayline(url=str(response.request.url), status=response.status_code)


def _cause(error: Exception) -> str:
    return str(error) or type(error).__name__
