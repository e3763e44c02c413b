"""Subscriptions of MCP clients: a stream of changes, and the resources that it tells of.

Since protocol 2026-07-28 a client says all it wants to be told in one request, whose answer is the stream. An older one
has a stream with `GET /mcp`, which tells of every list, and subscribes to resources in requests of their own: any
replica may get those, and asks for the one that serves the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, suppress
from typing import Any, Final

import anyio
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY, event_to_notification
from mcp_types import (
    INVALID_REQUEST,
    EmptyResult,
    JSONRPCNotification,
    SubscribeRequestParams,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from wayline.contracts.errors import Reject, Unavailable
from wayline.contracts.mcp_clients import Watching, WatchResource
from wayline.gateway.handlers.mcp.changes import EVERYTHING, Changes, ClientLists
from wayline.gateway.handlers.mcp.client_session import session_of
from wayline.gateway.handlers.mcp.offers import Offers
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.keys import Caller

STREAM_WITHIN_S: Final = 3.0
"""How long a subscription waits for the stream of its client, which opens it beside its first requests."""
ASK_WITHIN_S: Final = 0.5


class Subscriptions:
    """Serves streams of changes, and what clients subscribe to on them."""

    def __init__(self, gateway: Gateway, offers: Offers) -> None:
        self._gateway = gateway
        self._lists = ClientLists(gateway, offers)

    async def listen(
        self, ctx: ServerRequestContext[Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Tell a client what it wants to be told, until it leaves or this process stops."""
        assert ctx.request is not None and ctx.request_id is not None
        self._gateway.streams.require_room(ctx.request.state.identity)
        changes = Changes(self._gateway, self._lists, ctx.request.state.identity, params.notifications)
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
        await changes.begin()
        with self._gateway.streams.follower(ctx.request.state.identity) as follower:
            try:
                await _watch_all(changes, params.notifications.resource_subscriptions or ())
                honored = SubscriptionsAcknowledgedNotificationParams(notifications=changes.wanted, _meta=meta)
                async with aclosing(changes.told()) as told:
                    acknowledged = SubscriptionsAcknowledgedNotification(params=honored)
                    await ctx.session.send_notification(acknowledged, ctx.request_id)
                    async for event in told:
                        if event is not None:
                            await ctx.session.send_notification(event_to_notification(event, meta), ctx.request_id)
            except asyncio.CancelledError:
                if not follower.absorb_stop():
                    raise
            finally:
                with anyio.CancelScope(shield=True):
                    await changes.close()
        return SubscriptionsListenResult(_meta=meta)

    async def stream(self, caller: Caller, session: str) -> AsyncGenerator[bytes]:
        """Yield the changes of a session as server-sent events, until its client leaves or this process stops."""
        changes = Changes(self._gateway, self._lists, caller, EVERYTHING)
        await changes.begin()
        with (
            self._gateway.change_streams.serving(caller.tenant, session, changes),
            self._gateway.streams.follower(caller) as follower,
        ):
            try:
                async with aclosing(changes.told()) as told:
                    # Something at once: the client then knows that it is heard.
                    yield KEEPALIVE_COMMENT
                    async for event in told:
                        if event is None:
                            yield KEEPALIVE_COMMENT
                            continue
                        wire = event_to_notification(event, {}).model_dump(
                            mode="json", by_alias=True, exclude_none=True
                        )
                        message = JSONRPCNotification(jsonrpc="2.0", method=wire["method"], params=wire.get("params"))
                        yield format_sse_event(
                            event="message", data_str=message.model_dump_json(by_alias=True, exclude_none=True)
                        )
            except asyncio.CancelledError:
                if not follower.absorb_stop():
                    raise
            finally:
                with anyio.CancelScope(shield=True):
                    await changes.close()

    async def subscribe(self, ctx: ServerRequestContext[Any], params: SubscribeRequestParams) -> EmptyResult:
        """Have a client's stream tell of a resource."""
        return await self._watch(ctx, params.uri, on=True)

    async def unsubscribe(self, ctx: ServerRequestContext[Any], params: UnsubscribeRequestParams) -> EmptyResult:
        """Have a client's stream tell of a resource no longer."""
        return await self._watch(ctx, params.uri, on=False)

    async def _watch(self, ctx: ServerRequestContext[Any], uri: str, *, on: bool) -> EmptyResult:
        assert ctx.request is not None
        session, tenant = session_of(ctx.request), ctx.request.state.identity.tenant
        if session is not None:
            asked = WatchResource(tenant=tenant, session=session, uri=uri, on=on)
            try:
                async with asyncio.timeout(STREAM_WITHIN_S):
                    while True:
                        try:
                            await self._gateway.bus.ask(asked, Watching, timeout_s=ASK_WITHIN_S)
                        except Unavailable:
                            continue
                        return EmptyResult()
            except TimeoutError:
                pass
        raise MCPError(
            INVALID_REQUEST, "no stream is open to tell of changes: first open one, with GET and the Mcp-Session-Id"
        )


async def _watch_all(changes: Changes, uris: Iterable[str]) -> None:
    for uri in uris:
        # The acknowledgement leaves out what cannot be watched.
        with suppress(Reject):
            await changes.watch(uri)
