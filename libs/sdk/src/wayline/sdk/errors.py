"""What a tool's function may raise, and what the SDK raises.

ToolFailed      a tool could not do what it was asked
TryLater        a tool has not begun, and may later or in another process
ToolsRefused    the registry does not offer the tools
TimeoutError
└── JobTimeout      a job has not ended yet, and goes on
    └── JobWaits        because it waits for a person

Errors of the bus and of Wayline's services are a `WaylineError` of `wayline.contracts.errors`: `Unavailable` and other
`Retry` where the same may succeed later, `InvalidMessage`, `Refused` and other `Reject` where it never will.
"""

from __future__ import annotations


class ToolFailed(Exception):
    """The tool could not do what it was asked: the model reads the message."""


class TryLater(Exception):
    """The tool has done nothing and would do it later: the call is made again for a moment, also in another process."""


class ToolsRefused(Exception):
    """The registry does not offer these tools: the message says which and why."""


class JobTimeout(TimeoutError):
    """The job has not ended in time; it goes on."""

    def __init__(self, job_id: str, *, timeout_s: float, why: str = "") -> None:
        how = f"follow({job_id!r}), or run it again under this job_id, to await its end"
        super().__init__(f"the job {job_id} has not ended within {timeout_s:g} s{why} and goes on: {how}")
        self.job_id = job_id


class JobWaits(JobTimeout):
    """The job waits for a person."""

    def __init__(self, job_id: str, *, timeout_s: float, question: str) -> None:
        super().__init__(job_id, timeout_s=timeout_s, why=f", because it waits for a person ({question})")
        self.question = question
