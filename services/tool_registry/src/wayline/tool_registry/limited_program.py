"""Start a program under limits: `limited_program.py MEMORY_MB FILES FILE_MB PROGRAM ARGUMENT…`.

A file of its own that needs nothing of ours, because it becomes the program: what runs between a fork and the program
must not be our process with its threads.
"""

import ctypes
import os
import resource
import signal
import sys

MEGABYTE = 1024 * 1024
PR_SET_PDEATHSIG = 1


def main(memory_mb: str, files_max: str, file_mb: str, program: str, *arguments: str) -> None:
    """Set the limits, then become the program."""
    # Not the address space: runtimes such as Node reserve far more of it than they use.
    limit(resource.RLIMIT_DATA, int(memory_mb) * MEGABYTE)
    limit(resource.RLIMIT_NOFILE, int(files_max))
    limit(resource.RLIMIT_FSIZE, int(file_mb) * MEGABYTE)
    limit(resource.RLIMIT_CORE, 0)
    die_with_parent()
    os.execv(program, [program, *arguments])


def die_with_parent() -> None:
    """End with the process that started this one, also if that is killed; only Linux can."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the tool-registry has ended")


def limit(kind: int, most: int) -> None:
    """Lower a limit for good, never above what is allowed already."""
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main(*sys.argv[1:])
