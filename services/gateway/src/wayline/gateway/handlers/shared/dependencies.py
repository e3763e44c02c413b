"""Dependencies of the handlers: the gateway's parts, and the caller with its rights."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Protocol
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from opentelemetry import trace

from wayline.chassis import Bus
from wayline.chassis.claim_check.claims import MESSAGE_MAX
from wayline.gateway.adapters.audit_log import AuditLog
from wayline.gateway.adapters.change_locks import ChangeLocks
from wayline.gateway.adapters.job_actions import JobActions
from wayline.gateway.adapters.keys import Keys
from wayline.gateway.adapters.prompts import Prompts
from wayline.gateway.adapters.queue_places import QueueWatch
from wayline.gateway.adapters.rate_limits import RateLimits
from wayline.gateway.adapters.resent_requests import ResentRequests
from wayline.gateway.adapters.router import RouterAnswers
from wayline.gateway.adapters.signals import Signals
from wayline.gateway.adapters.submissions import Submissions
from wayline.gateway.adapters.tenant_feeds import TenantFeeds
from wayline.gateway.errors import Forbidden, Unauthorized
from wayline.gateway.event_streams import EventStreams
from wayline.gateway.handlers.shared.change_streams import ChangeStreams
from wayline.gateway.keys import IDENTITY, OPEN_TENANT, RATE_LIMITS, Caller, Scope
from wayline.gateway.openai.error_shape import PREFIX as OPENAI
from wayline.gateway.openapi import SCOPES_OF_CHECK
from wayline.gateway.page_access import LOCAL_NAMES
from wayline.gateway.settings import Settings
from wayline.gateway.token_leases import TokenLeases
from wayline.store import Store
from wayline.telemetry import Telemetry, names, remote


class Acting(Protocol):
    """Goes on with actions on many jobs."""

    def now(self) -> None:
        """Look for one at once."""
        ...


@dataclass(frozen=True)
class Gateway:
    """The parts that handlers use."""

    settings: Settings
    bus: Bus
    store: Store
    telemetry: Telemetry
    submissions: Submissions
    signals: Signals
    keys: Keys
    limits: RateLimits
    rates: TokenLeases
    prompts: Prompts
    resent_requests: ResentRequests
    change_locks: ChangeLocks
    router: RouterAnswers
    streams: EventStreams
    change_streams: ChangeStreams
    queues: QueueWatch
    feeds: TenantFeeds
    audit: AuditLog
    job_actions: JobActions
    acting: Acting
    ready: Callable[[], Awaitable[dict[str, str]]]


async def the_gateway(request: Request) -> Gateway:
    """Return the gateway that serves a request."""
    # Not a plain function: FastAPI would run it on a thread.
    return request.app.state.gateway


GatewayDependency = Annotated[Gateway, Depends(the_gateway)]

_bearer = HTTPBearer(
    auto_error=False, description="An API key. Not needed on a loopback address while no key was ever created."
)


async def identify(
    request: Request,
    gateway: GatewayDependency,
    shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Caller:
    """Identify the caller, whose tenant comes from the key alone, and count its request.

    Raises Unauthorized, Forbidden, RateLimited or TenantFull.
    """
    # OpenAI's clients do not go without a key: while none exists, theirs says nothing.
    shows_key = shown is not None and not (request.url.path.startswith(OPENAI) and await _is_open(gateway))
    if shown is not None and shows_key:
        caller = await gateway.keys.caller(shown.credentials)
        await gateway.router.require_tenant(caller.tenant)
    elif await _is_open(gateway):
        _require_local(request.headers)
        caller = Caller(OPEN_TENANT, "local", is_open=True)
    else:
        raise Unauthorized("an API key is needed: send `Authorization: Bearer wl_…`")
    setattr(request.state, IDENTITY, caller)
    if buckets := caller.buckets("requests"):
        await gateway.rates.spend(caller.tenant, buckets)
        setattr(request.state, RATE_LIMITS, gateway.rates.headers(caller.tenant, buckets))
    if _is_large(request):
        await gateway.router.require_room(caller.tenant)
    span = trace.get_current_span()
    span.set_attribute(names.TENANT, caller.tenant)
    if (theirs := remote(request.state.caller)) is not None:
        span.add_link(theirs)
    return caller


async def _is_open(gateway: Gateway) -> bool:
    """Return whether programs of this machine are served without a key."""
    return gateway.settings.loopback and not await gateway.keys.any()


def _is_large(request: Request) -> bool:
    """Return whether a body may go into the object store of payloads; documents have one of their own."""
    size = request.headers.get("content-length", "0")
    chunked = "transfer-encoding" in request.headers
    return (chunked or not size.isdecimal() or int(size) > MESSAGE_MAX) and request.url.path != "/v1/documents"


def _require_local(headers: Mapping[str, str]) -> None:
    """Refuse requests that a browser sends for other sites: without keys, any web page could use this port."""
    for header, scheme in (("host", "http://"), ("origin", "")):
        value = headers.get(header)
        if value is None:
            continue
        try:
            name = urlsplit(scheme + value).hostname
        except ValueError:
            name = None
        if name not in LOCAL_NAMES:
            raise Forbidden(
                f"{header} {value[:200]!r} is not this machine: while no API key exists, only programs on this "
                "machine are served. Create a key to allow others"
            )


def allowed(*scopes: Scope) -> Callable[[Caller], Awaitable[Caller]]:
    """Require a scope of the key, or one of several."""

    async def check(caller: Annotated[Caller, Depends(identify)]) -> Caller:
        if caller.scopes.isdisjoint(scopes):
            wanted = " or ".join(map(repr, scopes))
            raise Forbidden(f"this API key lacks the scope {wanted}; it has {', '.join(sorted(caller.scopes))}")
        return caller

    setattr(check, SCOPES_OF_CHECK, scopes)
    return check


def require_operator_for(caller: Caller, tenant: str) -> None:
    """Pass for the caller's own tenant, and for any where the key is an operator's. Raises Forbidden."""
    if tenant != caller.tenant and not caller.is_operator:
        raise Forbidden(f"this API key is of tenant {caller.tenant!r}; keys of {tenant!r} need the scope 'operator'")


def acting_as(caller: Caller, user_id: str | None) -> str | None:
    """Return for whom a request is: whom it names, or the one user of its key. Raises Forbidden for another one."""
    if caller.user_id is None:
        return user_id
    if user_id not in (None, caller.user_id):
        raise Forbidden(f"this API key acts for user {caller.user_id!r} and for nobody else")
    return caller.user_id


Reader = Annotated[Caller, Depends(allowed("read"))]
Writer = Annotated[Caller, Depends(allowed("write"))]
Approver = Annotated[Caller, Depends(allowed("approve"))]
MemoryReleaser = Annotated[Caller, Depends(allowed("memory:release"))]
"""Who may let facts count that a job saved after it had read the words of strangers."""
Decider = Annotated[Caller, Depends(allowed("write", "approve"))]
"""Who may say what became of a call: that approves none, and people who approve calls know it, too."""
Admin = Annotated[Caller, Depends(allowed("admin"))]
WebhookKeeper = Annotated[Caller, Depends(allowed("webhooks", "admin"))]
Operator = Annotated[Caller, Depends(allowed("operator"))]
