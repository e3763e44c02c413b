"""Reasons for which a running call is ended early."""

from enum import StrEnum


class StopReason(StrEnum):
    """The reason why a running call is ended early."""

    CANCELLED = "cancelled"
    """The job was cancelled."""
    STOPPING = "stopping"
    """This process ends."""
    FENCED = "fenced"
    """Another holder has taken the key over."""
