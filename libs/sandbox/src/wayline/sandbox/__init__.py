"""Runs programs that models write: type-checked, bounded, suspended at each call of a tool."""

from wayline.sandbox.errors import Diverged, OtherInterpreter, OtherOwner, SnapshotRefused, WrongSignature
from wayline.sandbox.limits import Limits
from wayline.sandbox.program import (
    Answer,
    Completed,
    Failed,
    Program,
    ProgramCall,
    Raised,
    Returned,
    Suspended,
    Turn,
)
from wayline.sandbox.rerun import Recording, rerun
from wayline.sandbox.sandbox import Sandbox
from wayline.sandbox.snapshots import SnapshotKeys, SnapshotOwner, read_snapshot, write_snapshot
from wayline.sandbox.stubs import Stubs, make_stubs

__all__ = [
    "Answer",
    "Completed",
    "Diverged",
    "Failed",
    "Limits",
    "OtherInterpreter",
    "OtherOwner",
    "Program",
    "ProgramCall",
    "Raised",
    "Recording",
    "Returned",
    "Sandbox",
    "SnapshotKeys",
    "SnapshotOwner",
    "SnapshotRefused",
    "Stubs",
    "Suspended",
    "Turn",
    "WrongSignature",
    "make_stubs",
    "read_snapshot",
    "rerun",
    "write_snapshot",
]
