"""Why a running call is ended early."""

from enum import StrEnum


class StopReason(StrEnum):
    """Who no longer wants a call that runs."""

    CANCELLED = "cancelled"
    """The job was cancelled."""
    STOPPING = "stopping"
    """This process ends."""
    FENCED = "fenced"
    """Another holder has taken the key over."""
