"""Errors of the gateway, beside those of the contracts.

Exception
└── WaylineError
    ├── PortTaken          something else listens on the port
    ├── ExportCut          the rest of a file cannot be read now
    ├── WrongSetting
    │   └── NoKeys             it would listen beyond this machine without any API key
    ├── Retry
    │   ├── TooManyStreams     as many clients follow jobs as this process serves
    │   ├── ShareOfStreams     as many of this key, or of its tenant, as may
    │   ├── RateLimited        more requests or jobs than its tenant, key or user may make
    │   ├── TooManyRunning     as many jobs of its agent, user or key run as may (it is Full)
    │   └── TooManySignals     the bus holds as many signals of the tenant as it may have (it is Full)
    └── Reject
        ├── Unauthorized       no key, or one that is not valid (any more)
        ├── Forbidden          a valid key that may not do this, or a web page of another origin
        │   ├── UnknownTenant      a key of a tenant that the router does not know
        │   └── TenantDisabled     a key of a tenant that an operator has disabled
        ├── JobIdConflict      the job id stands for another job already
        ├── KeyReused          the Idempotency-Key stands for another body already
        ├── CallKeyReused      the key of a tool's call stands for another call already
        ├── KeyNeeded          a call that does more than read has no key
        ├── ApprovalNeeded     a call that a person must approve, which only a job can wait for
        ├── NoBudget           a budget has no room for what a call charges
        ├── DecidedOtherwise   the approval or answer was decided with other content already
        ├── SessionBusy        a job of the session has not ended, and the new one would rather be refused than wait
        ├── JobEnded              the job takes no more signals
        ├── NotWaiting         the job waits for no such decision
        ├── NotAsked           the job waits for no such approval
        ├── ArgumentsRefused   edited arguments that the tool does not take
        ├── NothingAsked       an MCP client answers what nobody asked it
        ├── Declined           the user of an MCP client answers no to what a tool asks
        ├── Empty              a document without content
        ├── PreconditionFailed what If-Match or If-None-Match ask for does not hold
        └── WrongContentType   a body in a form that is not read here
"""

from __future__ import annotations

from collections.abc import Mapping

from wayline.contracts.errors import Conflict, Full, Reject, Retry, WaylineError, WrongSetting


class PortTaken(WaylineError):
    """Something else listens on the port."""

    def __init__(self, *, host: str, port: int, cause: str) -> None:
        super().__init__(
            f"the gateway cannot listen on {host}:{port} ({cause}). Stop what uses the port, or set WAYLINE_HTTP_PORT."
        )


class NoKeys(WrongSetting):
    """The gateway would listen beyond this machine without any API key."""

    def __init__(self, *, host: str) -> None:
        super().__init__(
            "WAYLINE_HTTP_HOST",
            f"refusing to listen on {host} without any API key: everyone who reaches the port could run jobs. "
            "Create a key first (`wayline keys create` while it listens on 127.0.0.1, or "
            "`python deploy/docker/first_key.py DATA_DIR`), or set WAYLINE_HTTP_HOST=127.0.0.1.",
        )


class ExportCut(WaylineError):
    """The rest of a file cannot be read now: its transfer breaks off."""

    def __init__(self, why: str) -> None:
        super().__init__(f"an export is cut off: {why}")


class TooManyStreams(Retry):
    """As many clients follow jobs as this process serves."""

    code = "too_many_streams"

    def __init__(self, *, most: int) -> None:
        super().__init__(f"{most} clients follow jobs here already; try again, or raise WAYLINE_GATEWAY_STREAMS_MAX")


class ShareOfStreams(Retry):
    """As many clients of one key, or of one tenant, follow jobs or wait for them as may."""

    code = "too_many_streams"
    status = 429

    def __init__(self, *, whose: str, most: int, setting: str) -> None:
        super().__init__(
            f"{most} clients of {whose} follow jobs or wait for them here already: end one, or raise "
            f"WAYLINE_GATEWAY_{setting}"
        )


class RateLimited(Retry):
    """More requests or jobs than a tenant, a key or a user may make."""

    code = "rate_limit_exceeded"
    status = 429

    def __init__(self, *, whose: str, per_minute: int, after_s: float, headers: Mapping[str, str]) -> None:
        whom, _, meter = whose.partition("-")
        super().__init__(
            f"this {whom} may {'begin' if meter else 'send'} {per_minute} {meter or 'requests'} a minute: try again "
            f"after {after_s:.3g} s",
            after_s=after_s,
        )
        self.headers = dict(headers)


class TooManyRunning(Full):
    """As many jobs of an agent, a user or an API key run as may, and a limit refuses more."""

    code = "too_many_running"

    def __init__(self, words: str) -> None:
        Retry.__init__(self, f"{words}: submit it again later", after_s=5.0)


class Unauthorized(Reject):
    """No key, or one that is not valid."""

    code = "unauthorized"
    status = 401


class Forbidden(Reject):
    """A valid key that may not do this, or a page of another origin."""

    code = "forbidden"
    status = 403


class UnknownTenant(Forbidden):
    """A key of a tenant that the router does not know."""

    code = "unknown_tenant"

    def __init__(self, *, tenant: str) -> None:
        super().__init__(
            f"this key is of tenant {tenant!r}, which does not exist: an operator creates it (/v1/tenants)"
        )


class TenantDisabled(Forbidden):
    """A key of a tenant that an operator has disabled."""

    code = "tenant_disabled"

    def __init__(self, *, tenant: str, reason: str) -> None:
        why = f" ({reason})" if reason else ""
        super().__init__(f"tenant {tenant!r} is disabled{why}: an operator can enable it again")


class JobIdConflict(Conflict):
    """The job id stands for another job already."""

    code = "job_id_conflict"

    def __init__(self, *, job_id: str) -> None:
        super().__init__(f"job {job_id!r} exists with other content; leave job_id out, or choose a new one")


class KeyReused(Conflict):
    """The Idempotency-Key stands for another body already."""

    code = "idempotency_key_reused"

    def __init__(self, *, job_id: str) -> None:
        super().__init__(
            f"this Idempotency-Key was used with another body, for job {job_id!r}; a new request needs a new key"
        )


class CallKeyReused(Conflict):
    """The key of a tool's call stands for another call already."""

    code = "key_reused"

    def __init__(self, *, named_by: str) -> None:
        super().__init__(
            f"{named_by} stands for a call with other content already: a new call needs a new one. Nothing was called"
        )


class KeyNeeded(Reject):
    """A call that does more than read has no key of its own."""

    code = "idempotency_key_needed"

    def __init__(self, *, tool: str) -> None:
        super().__init__(
            f"{tool} does more than read for nothing: send an `Idempotency-Key`, so that the same request again is the "
            "same call"
        )


class ApprovalNeeded(Conflict):
    """A call that a person must approve."""

    code = "needs_approval"

    def __init__(self, *, tool: str, how: str) -> None:
        super().__init__(
            f"a call of {tool} needs a person's approval, which only a job can wait for: have an agent that may use it "
            f"do this, with {how}"
        )


class NoBudget(Reject):
    """A budget has no room for what a call charges."""

    code = "no_budget"
    status = 402


class DecidedOtherwise(Conflict):
    """The approval or answer was decided with other content already."""

    code = "decided_otherwise"

    def __init__(self, *, decision_id: str) -> None:
        super().__init__(f"{decision_id!r} was decided otherwise a moment ago, and the first decision counts")


class SessionBusy(Conflict):
    """A job of the session has not ended, and the new one would rather be refused than wait."""

    code = "session_busy"

    def __init__(self, *, session_id: str, job_id: str) -> None:
        super().__init__(
            f"session {session_id!r} is busy with job {job_id!r}: wait for its end, or choose another options.when_busy"
        )


class JobUnfinished(Retry):
    """A job takes longer than its client may wait for it."""

    code = "job_unfinished"
    status = 504

    def __init__(self, *, job_id: str, wait_s: float) -> None:
        super().__init__(
            f"job {job_id!r} has not ended after {wait_s:g} s and goes on: send the same request again to wait for it, "
            f"or read it at /v1/jobs/{job_id}"
        )


class JobEnded(Conflict):
    """The job takes no more signals."""

    code = "job_ended"

    def __init__(self, *, job_id: str) -> None:
        super().__init__(f"job {job_id!r} has ended")


class NotWaiting(Conflict):
    """The job waits for no such decision."""

    code = "not_waiting"

    def __init__(self, *, job_id: str, decision_id: str) -> None:
        super().__init__(f"job {job_id!r} does not wait for decision {decision_id!r} (any more)")


class NotAsked(Conflict):
    """The job waits for no such approval."""

    code = "not_waiting"

    def __init__(self, *, job_id: str, approval_id: str) -> None:
        super().__init__(f"job {job_id!r} does not wait for approval {approval_id!r} (any more)")


class AskedOtherwise(Conflict):
    """A decision names the hash of something else than what is asked now."""

    code = "asked_otherwise"

    def __init__(self, *, approval_id: str, now: str) -> None:
        super().__init__(f"approval {approval_id!r} is asked for something else (hash {now!r}): look at it again")


class ArgumentsRefused(Reject):
    """Edited arguments that the tool does not take."""

    code = "invalid_arguments"
    status = 422

    def __init__(self, *, tool: str, problem: str) -> None:
        super().__init__(f"{tool} does not take these arguments: {problem}. Correct them and decide again")


class NothingAsked(Reject):
    """An MCP client answers what nobody asked it."""

    code = "nothing_asked"

    def __init__(self, *, id: object) -> None:
        super().__init__(f"nothing was asked here under the id {str(id)[:100]!r}: answer with the id of the question")


class Declined(Reject):
    """The user of an MCP client answers no to what a tool asks."""

    code = "denied"

    def __init__(self, *, why: str) -> None:
        super().__init__(f"the call ended with a question of the tool's server that was not answered: {why}")


class UnsupportedParameter(Reject):
    """A field of an OpenAI request that no agent can heed, or that is wrong."""

    code = "unsupported_parameter"

    def __init__(self, param: str, why: str, *, code: str | None = None) -> None:
        super().__init__(f"{param[:200]!r} cannot be heeded: {why}", code=code)
        self.param = param


class Empty(Reject):
    """A document without content."""

    code = "empty_document"
    status = 422

    def __init__(self) -> None:
        super().__init__("the document is empty; send its text in `text`, or its bytes as the multipart field `file`")


class TooManySignals(Full):
    """The bus holds as many signals of the tenant as it may have."""

    code = "too_many_signals"

    def __init__(self, *, tenant: str, most: int) -> None:
        Retry.__init__(
            self,
            f"{most} signals of tenant {tenant!r} are held for its jobs: try again when some of these have ended, or "
            "raise WAYLINE_SIGNALS_PER_TENANT_MAX",
        )


class WrongContentType(Reject):
    """A body in a form that is not read here."""

    code = "unsupported_media_type"
    status = 415

    def __init__(self, *, found: str, wanted: str) -> None:
        super().__init__(f"the body is {found or 'of no stated type'}; send {wanted}")


class PreconditionFailed(Reject):
    """What If-Match or If-None-Match ask for does not hold, so nothing was changed."""

    def __init__(self, why: str, *, tag: str | None, asked: tuple[str, ...] = ()) -> None:
        versions = f" (asked for: {', '.join(asked)}; there is: {tag or 'nothing'})" if asked else ""
        super().__init__(f"{why}{versions}", code="precondition_failed", status=412)
        self.tag = tag
        self.headers = {} if tag is None else {"ETag": tag}
