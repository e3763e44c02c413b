"""Start a program under limits: `limited_program.py MEMORY_MB FILES FILE_MB PROGRAM ARGUMENT…`, 0 for none.

A file of its own that needs nothing of ours, because it becomes the program: what runs between a fork and the program
must not be our process with its threads.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time

MEGABYTE = 1024 * 1024
PR_SET_PDEATHSIG = 1
GRACE_S = 5.0
"""Longer than a registry takes to end a program."""


def main(memory_mb: str, files_max: str, file_mb: str, program: str, *arguments: str) -> None:
    """Set the limits, then become the program."""
    # Not the address space: runtimes such as Node reserve far more of it than they use.
    limit(resource.RLIMIT_DATA, int(memory_mb) * MEGABYTE)
    limit(resource.RLIMIT_NOFILE, int(files_max))
    limit(resource.RLIMIT_FSIZE, int(file_mb) * MEGABYTE)
    limit(resource.RLIMIT_CORE, 0)
    die_with_parent()
    end_group_with_registry()
    os.execv(program, [program, *arguments])


def die_with_parent() -> None:
    """End with the process that started this one, also if that is killed; only Linux can."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the tool-registry has ended")


def end_group_with_registry() -> None:
    """Leave a process that kills the whole group once the registry has ended, with all that the program started.

    The program's input tells: its other end is the registry's alone, and is closed however the registry ends.
    """
    first = os.fork()
    if first != 0:
        # Not a child of the program, which may wait for every child that it has.
        os.waitpid(first, 0)
        return
    if os.fork() != 0:
        os._exit(0)
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    # It must not hold the program's output open: its end tells that the program has ended.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    watched = select.poll()
    watched.register(0, 0)
    watched.poll()
    # A registry that lives has closed the input to end the program, and kills what is left of the group sooner.
    time.sleep(GRACE_S)
    os.killpg(0, signal.SIGKILL)


def limit(kind: int, most: int) -> None:
    """Lower a limit for good, never above what is allowed already; 0: leave it."""
    if not most:
        return
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main(*sys.argv[1:])
