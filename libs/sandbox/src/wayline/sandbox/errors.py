"""What can go wrong around a program. What goes wrong in it is no error of ours: it is told to its model, as `Failed`.

WaylineError
├── Unavailable             no worker process could be had in time
├── SnapshotRefused         a snapshot is not loaded: run the program again from its recorded results
│   ├── WrongSignature          it was changed, was cut, or is signed with a key that is not known here
│   ├── OtherInterpreter        another version of the interpreter wrote it
│   └── OtherOwner              it belongs to another tenant, another job or another program
└── Diverged                a program that ran again did not make the calls that are recorded of it
"""

from __future__ import annotations

from wayline.contracts.errors import Bug, Reject


class SnapshotRefused(Reject):
    """A snapshot is not loaded; the program can run again from its recorded results."""

    code = "snapshot_refused"


class WrongSignature(SnapshotRefused):
    """A snapshot was changed, was cut, or is signed with a key that is not known here."""

    code = "wrong_signature"


class OtherInterpreter(SnapshotRefused):
    """Another version of the interpreter wrote a snapshot."""

    code = "other_interpreter"

    def __init__(self, *, wrote: str, reads: str) -> None:
        super().__init__(f"the snapshot was written by interpreter {wrote}, and this is {reads}")


class OtherOwner(SnapshotRefused):
    """A snapshot belongs to another tenant, another job or another program."""

    code = "other_owner"

    def __init__(self, *, field: str) -> None:
        super().__init__(f"the snapshot belongs to another {field}")


class Diverged(Bug):
    """A program that ran again did not make the calls that are recorded of it."""

    code = "diverged"

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(f"call {number} of the program is not the one that is recorded: {problem}")
        self.number = number
