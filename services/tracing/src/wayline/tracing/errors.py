"""What can go wrong in tracing.

WaylineError
└── Reject
    ├── NotARecord        a message on `events.>` that is no record of a job
    ├── NotSpans          a message on `telemetry.traces` that is no OTLP batch
    ├── BadCursor         a page was asked for with a cursor that no page gave
    ├── TooMuchFeedback   a job has as many judgements as it may
    └── UnknownTimeZone   days were asked for by a clock that nobody knows
"""

from __future__ import annotations

from wayline.contracts.errors import Reject


class NotARecord(Reject):
    """A message on `events.>` that is no record of a job."""

    code = "invalid_record"

    def __init__(self, reason: str) -> None:
        super().__init__(f"not a record of a job: {reason}")


class NotSpans(Reject):
    """A message on `telemetry.traces` that is no OTLP batch."""

    code = "invalid_spans"

    def __init__(self) -> None:
        super().__init__("not an OTLP ExportTraceServiceRequest in protobuf")


class BadCursor(Reject):
    """A page was asked for with a cursor that no page gave."""

    code = "invalid_cursor"
    status = 400

    def __init__(self, cursor: str) -> None:
        super().__init__(f"{cursor[:64]!r} is no cursor: use the `next_cursor` of the page before, unchanged")


class TooMuchFeedback(Reject):
    """A job has as many judgements as it may."""

    code = "too_much_feedback"
    status = 409

    def __init__(self, *, most: int) -> None:
        super().__init__(f"the job has {most} judgements, the most there may be: change one of them")


class UnknownTimeZone(Reject):
    """Days were asked for by a clock that nobody knows."""

    code = "unknown_timezone"
    status = 422

    def __init__(self, name: str) -> None:
        super().__init__(f"no time zone {name[:64]!r}: use an IANA name such as Europe/Berlin")
