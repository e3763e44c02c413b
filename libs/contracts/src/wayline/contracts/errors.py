"""What can go wrong, and who may try again.

WaylineError
├── Retry               the same message may succeed later: wait `after_s`, keep the message
│   ├── Unavailable         a dependency is away
│   ├── Deferred            it waits for something of its own, while others may go on
│   └── Full                a bounded stream takes no more for now (HTTP 429)
│       └── TenantFull          the tenant stores as much as it may, or has as many jobs unfinished
├── Reject              it never will: dead letter on the bus, problem over HTTP
│   ├── InvalidMessage      the body, its headers or its schema version are wrong
│   ├── NotFound            no such thing for this tenant
│   ├── Conflict            the same id with other content
│   └── Refused             another service answered with such an error
├── WrongSetting        a setting cannot be used: the operator of the process changes it
└── Bug                 a promise of our own code is broken: crash, do not guess
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Problem(BaseModel):
    """An error as it travels: RFC 9457 over HTTP, and the body of a refused request on the bus."""

    model_config = ConfigDict(frozen=True)

    code: str
    title: str
    detail: str
    status: int = 400
    retry_after_s: float | None = None


class WaylineError(Exception):
    """Anything Wayline raises on purpose."""

    code: str = "error"
    status: int = 500

    def problem(self) -> Problem:
        """Return this error in the form that the bus and HTTP send."""
        return Problem(code=self.code, title=self.code.replace("_", " "), detail=str(self), status=self.status)


class Retry(WaylineError):
    """The same message may succeed later."""

    code = "retry"
    status = 503

    def __init__(self, reason: str, *, after_s: float = 1.0) -> None:
        super().__init__(reason)
        self.after_s = after_s

    def problem(self) -> Problem:
        """Return this error with the time after which to try again."""
        return super().problem().model_copy(update={"retry_after_s": self.after_s})


class Unavailable(Retry):
    """Something this needs does not answer: try again when it is back."""

    code = "unavailable"

    def __init__(self, what: str, *, detail: str = "", after_s: float = 1.0) -> None:
        super().__init__(f"{what} does not answer{': ' + detail if detail else ''}; try again", after_s=after_s)


class Deferred(Retry):
    """This waits for something that every replica would wait for, and that others may not need."""


class Full(Retry):
    """A bounded queue takes no more for now."""

    code = "full"
    status = 429

    def __init__(self, what: str, *, after_s: float = 1.0) -> None:
        super().__init__(f"{what} is full; send it again after {after_s:g} s", after_s=after_s)

    @classmethod
    def told(cls, problem: Problem) -> Full:
        """Return it as another service has told it, in that service's words."""
        full = cls.__new__(cls)
        Retry.__init__(full, problem.detail, after_s=problem.retry_after_s or 1.0)
        full.status = problem.status
        return full


class TenantFull(Full):
    """The tenant stores as much on the bus as it may, or has as many jobs unfinished."""

    code = "tenant_full"

    def __init__(self, why: str) -> None:
        Retry.__init__(self, why, after_s=5.0)


class Reject(WaylineError):
    """The message is wrong and stays wrong."""

    code = "rejected"
    status = 400

    def __init__(self, reason: str, *, code: str | None = None, status: int | None = None) -> None:
        super().__init__(reason)
        if code is not None:
            self.code = code
        if status is not None:
            self.status = status


class InvalidMessage(Reject):
    """A body, header or schema version that cannot be read."""

    code = "invalid_message"
    status = 422

    def __init__(self, *, schema: str, reason: str) -> None:
        super().__init__(f"not a valid {schema}: {reason}")


class NotFound(Reject):
    """No such thing for this tenant."""

    code = "not_found"
    status = 404

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"no {what} {name!r}")


class Conflict(Reject):
    """The same id already means something else."""

    code = "conflict"
    status = 409


class Refused(Reject):
    """A request on the bus was answered with a Problem that will not change by asking again."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail, code=problem.code, status=problem.status)


class WrongSetting(WaylineError):
    """A setting cannot be used."""

    code = "wrong_setting"
    exit_code = 2
    """Of the process that was started with it."""

    def __init__(self, variable: str, problem: str) -> None:
        super().__init__(f"{variable}: {problem}")
        self.variable = variable


class Bug(WaylineError):
    """A promise of our own code is broken."""

    code = "bug"


def raised(problem: Problem) -> WaylineError:
    """Return the error that a Problem on the wire stands for: Retry when it may be asked again, else Refused."""
    if problem.code == Full.code:
        return Full.told(problem)
    if problem.status == 503 or (problem.retry_after_s is not None and problem.status != 429):
        return Retry(problem.detail, after_s=problem.retry_after_s or 1.0)
    return Refused(problem)
