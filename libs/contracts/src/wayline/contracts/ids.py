"""Ids: what is allowed, and what is derived. Everything derived starts with the tenant."""

from __future__ import annotations

import re
import secrets
from functools import lru_cache
from hashlib import sha256
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

TENANT_PATTERN = r"^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$"
JOB_ID_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"
NAME_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}$"

USER_PATTERN = r"^[^\x00-\x1f\x7f]{1,200}$"
"""Of users of whom something is remembered; a job's user may have another id."""

SUMMARY_PREFIX = "summary_"
"""Of the ids of jobs that summarise what is remembered of a user."""

_TENANT = re.compile(TENANT_PATTERN)
_USER = re.compile(USER_PATTERN)
_CHILD = re.compile(r"child_([0-9a-f]{32})_[0-9a-f]{20}")
"""The id of a job that another one started, with the trace of the first one of them."""

RECENT = 4_096
"""Derived ids that are kept at hand: each is asked for at every step of its job."""

Tenant = Annotated[str, StringConstraints(pattern=TENANT_PATTERN)]
JobId = Annotated[str, StringConstraints(pattern=JOB_ID_PATTERN)]
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]


WORDS_OF_PATHS = frozenset({"actions", "export"})
"""What stands in paths of the HTTP API where else a job's id does."""


def _free(job_id: str) -> str:
    if is_child(job_id):
        raise ValueError("ids of this form are those of jobs that other jobs start: choose another one")
    return job_id


def is_child(job_id: str) -> bool:
    """Return whether a job was started by another one: its id says so, and a client cannot choose such an id."""
    return _CHILD.fullmatch(job_id) is not None


def _readable(job_id: str) -> str:
    if job_id in WORDS_OF_PATHS:
        raise ValueError(f"{job_id!r} is a word of the API's paths: choose another id")
    return job_id


ChosenJobId = Annotated[JobId, AfterValidator(_free)]
"""An id that a client has chosen: also one of a version that did not yet refuse the words of paths."""
NewJobId = Annotated[ChosenJobId, AfterValidator(_readable)]
"""An id that a client may choose."""


def is_tenant(text: str) -> bool:
    """Return whether this may name a tenant."""
    return _TENANT.fullmatch(text) is not None


def new_id(prefix: str) -> str:
    """Make a fresh random id such as `job_3f9c…`: 80 random bits."""
    return f"{prefix}_{secrets.token_hex(10)}"


def job_id_from(text: str) -> str:
    """Return a job id for any client id: itself where it is allowed, else its hash (the same at each redelivery)."""
    if re.fullmatch(JOB_ID_PATTERN, text) and not is_child(text) and text not in WORDS_OF_PATHS:
        return text
    return f"job_{sha256(text.encode()).hexdigest()[:40]}"


@lru_cache(RECENT)
def trace_id(tenant: str, job_id: str) -> str:
    """Return the one trace id of a job and of all that it starts: 32 hex digits, the same wherever it is computed."""
    child = _CHILD.fullmatch(job_id)
    if child is not None:
        return child[1]
    return sha256(f"wayline/trace/{tenant}/{job_id}".encode()).hexdigest()[:32]


@lru_cache(RECENT)
def span_id(tenant: str, job_id: str, *path: str | int) -> str:
    """Return the span id of a part of a job, for instance `span_id("acme", "j1", "step", 2)`: 16 hex digits."""
    parts = "/".join(map(str, path))
    return sha256(f"wayline/span/{tenant}/{job_id}/{parts}".encode()).hexdigest()[:16]


def job_span(tenant: str, job_id: str) -> str:
    """Return the id of a job's root span."""
    return span_id(tenant, job_id, "job")


def schedule_span(tenant: str, uid: str, version: int) -> tuple[str, str]:
    """Return the ids of the trace and the span that stand for a version of a schedule."""
    digest = sha256(f"wayline/schedule/{tenant}/{uid}/{version}".encode()).hexdigest()
    return digest[:32], digest[32:48]


def firing_job(tenant: str, uid: str, version: int, moment: str) -> str:
    """Return the id of the job that a schedule submits for a moment: the same whichever router does it."""
    return f"job_{sha256(f'wayline/firing/{tenant}/{uid}/{version}/{moment}'.encode()).hexdigest()[:20]}"


def extraction_job(tenant: str, session_id: str, user_id: str, last_job: str) -> str:
    """Return the id of the job that reads what a user said in a session up to a job, whichever router submits it."""
    named = f"wayline/extraction/{tenant}/{session_id}/{user_id}/{last_job}"
    return f"job_{sha256(named.encode()).hexdigest()[:20]}"


def summary_job(tenant: str, user_id: str, wanted_at: str) -> str:
    """Return the id of the job that summarises what is remembered of a user, whichever router submits it."""
    return f"{SUMMARY_PREFIX}{sha256(f'wayline/summary/{tenant}/{user_id}/{wanted_at}'.encode()).hexdigest()[:20]}"


def step_span(tenant: str, job_id: str, step: int) -> str:
    """Return the id of a step's span."""
    return span_id(tenant, job_id, "step", step)


def model_span(tenant: str, job_id: str, step: int, attempt: int) -> str:
    """Return the id of the span of one attempt of a model call."""
    return span_id(tenant, job_id, "model", step, attempt)


def tool_span(tenant: str, job_id: str, step: int, call: str) -> str:
    """Return the id of a tool call's span, the same for all its repeats."""
    return span_id(tenant, job_id, "tool", step, call)


def attempt_id(tenant: str, job_id: str, step: int, attempt: int) -> str:
    """Return the id of one attempt of a model call: the header by which a provider's bill is matched."""
    return f"{tenant}/{job_id}/{step}/m{attempt}"


def aux_id(tenant: str, job_id: str, step: int, n: int) -> str:
    """Return the id of the n-th auxiliary call after a step: sent to the provider like an attempt's id."""
    return f"{tenant}/{job_id}/{step}/a{n}"


def aux_span(tenant: str, job_id: str, attempt_id: str) -> str:
    """Return the id of an auxiliary call's span."""
    return span_id(tenant, job_id, "aux", attempt_id)


def child_id(tenant: str, parent_id: str, step: int, call: str) -> str:
    """Return the id of the job that a call of `run_agent` starts: the same however often it is started."""
    digest = sha256(f"wayline/child/{tenant}/{parent_id}/{step}/{call}".encode()).hexdigest()[:20]
    return f"child_{trace_id(tenant, parent_id)}_{digest}"


def tool_key(tenant: str, job_id: str, step: int, call: str) -> str:
    """Return the ledger key of a tool call: the same however often it is asked."""
    return f"{tenant}/{job_id}/{step}/{call}"


def may_be_remembered(user_id: str | None) -> bool:
    """Return whether something can be remembered of a job's user: there is one, whose id is one line and not empty."""
    return user_id is not None and _USER.fullmatch(user_id) is not None
