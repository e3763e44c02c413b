"""Keep what a service knows from other processes of its user: its memory, and the environment that it was started with.

The system shows both in /proc to every program of the same user, unless the process forbids it.
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

PR_SET_DUMPABLE = 4
SECRET_NAME = re.compile(rb"KEY|SEED|DSN|SECRET|TOKEN|PASS|CREDENTIAL|HEADERS|SERVERS")
"""Of a variable whose value others must not read. `os.environ` keeps it: that is a copy in this process's memory."""
ENVIRONMENT_FIELDS = slice(47, 49)
"""Of /proc/self/stat behind the program's name: where the environment begins and ends."""


def keep_secrets() -> None:
    """Close this process to others of its user, and blank the secrets in the environment that the system shows.

    A program that this process starts without naming an environment sees these variables as empty.
    """
    if sys.platform != "linux":
        return
    begin, end = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[ENVIRONMENT_FIELDS])
    if begin:
        _blank(begin, ctypes.string_at(begin, end - begin))
    # No core dump either. A program that is started is open again.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def _blank(begin: int, environment: bytes) -> None:
    at = begin
    for variable in environment.split(b"\0"):
        name, _, value = variable.partition(b"=")
        if value and SECRET_NAME.search(name.upper()):
            ctypes.memset(at + len(name) + 1, 0, len(value))
        at += len(variable) + 1
