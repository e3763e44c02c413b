"""Start a program and guard it: `program_guard.py MEMORY_MB FILES FILE_MB PROGRAM ARGUMENT…`, 0 for no limit.

The guard is the program's parent, and stands between it and the registry. It ends after the program, as the program
did, and on Linux once it has killed all that the program has started. It kills them where the registry ends, however
that ends: elsewhere those that are in its own process group, as the program is.

A file of its own that needs nothing of ours: what runs between a fork and the program must not be our process with its
threads.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress

LINUX = sys.platform == "linux"
LIBC = ctypes.CDLL(None)
MEGABYTE = 1024 * 1024
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 5.0
"""How long a program may go on once its input has ended: longer than a registry takes to end it."""
KILL_S = 2.0
"""How long processes may take to die."""
KILL_POLL_S = 0.002
CANNOT_RUN = 127
WAKING = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(memory_mb: str, files_max: str, file_mb: str, program: str, *arguments: str) -> None:
    """Start the program, and end after it and all that it started, as it did."""
    registry = os.getppid()
    close_inherited_files()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    woken = wake_on_signals()
    if LINUX:
        # What loses its parent becomes our child, where it is found.
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGUSR1)
    guard = os.getpid()
    pid = os.fork()
    if pid == 0:
        die_with(guard)
        if LINUX:
            # So that what the program sends to its group does not reach the guard.
            os.setpgid(0, 0)
        # Not the address space: runtimes such as Node reserve far more of it than they use.
        limit(resource.RLIMIT_DATA, int(memory_mb) * MEGABYTE)
        limit(resource.RLIMIT_NOFILE, int(files_max))
        limit(resource.RLIMIT_FSIZE, int(file_mb) * MEGABYTE)
        become(program, arguments)
    release_output()
    status = watched(pid, registry, woken)
    if LINUX:
        kill_all(pid)
        reaped(pid)
    end_as(status)


def close_inherited_files() -> None:
    """Close all files but the three streams: a copy of one that is left open keeps a stream from ending."""
    for name in os.listdir("/proc/self/fd" if LINUX else "/dev/fd"):
        if int(name) > 2:
            with suppress(OSError):
                os.close(int(name))


def wake_on_signals() -> int:
    """Return a file that can be read once a signal has come; none of them ends this process."""
    woken, waking = os.pipe()
    for end in (woken, waking):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    for name in WAKING:
        # Not SIG_IGN, which the program would inherit.
        signal.signal(name, lambda *_: None)
    return woken


def die_with(parent: int) -> None:
    """End with the process that started this one, also if that is killed; only Linux can."""
    if LINUX:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def become(program: str, arguments: tuple[str, ...]) -> None:
    """Replace this process by the program."""
    # Python ignores it, and the program would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execv(program, [program, *arguments])
    except OSError as error:
        os.write(2, f"{program} cannot be run: {error.strerror}\n".encode(errors="replace"))
        os._exit(CANNOT_RUN)


def release_output() -> None:
    """Let go of the program's output and error stream: they must end with it."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def watched(program: int, registry: int, woken: int) -> int:
    """Return how the program ended; kill it where the registry has ended, or did not end it in time.

    The input's other end is the registry's alone. A registry that lives closes it to end the program, and one that is
    killed as well.
    """
    events = select.poll()
    events.register(woken, select.POLLIN)
    events.register(0, 0)
    kill_at: float | None = None
    while (status := reaped(program)) is None:
        if os.getppid() != registry or (kill_at is not None and time.monotonic() >= kill_at):
            kill_all(program)
            kill_at = None
        left_ms = None if kill_at is None else max(0.0, kill_at - time.monotonic()) * 1000 + 1
        for file, _ in events.poll(left_ms):
            if file == 0:
                events.unregister(0)
                kill_at = time.monotonic() + GRACE_S
            elif signal.SIGTERM in os.read(woken, 4096) and LINUX:
                signal_group(program, signal.SIGTERM)
    return status


def reaped(program: int) -> int | None:
    """Take in every child that has ended, and return the program's status; None: it is not among them."""
    found = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == program:
                found = ended[1]
    return found


def kill_all(program: int) -> None:
    """Kill a program's group and all that runs below this process, until there is none; elsewhere our own group."""
    if not LINUX:
        os.killpg(0, signal.SIGKILL)
    signal_group(program, signal.SIGKILL)
    until = time.monotonic() + KILL_S
    while kill_below(os.getpid()) and time.monotonic() < until:
        time.sleep(KILL_POLL_S)


def signal_group(program: int, what: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(program, what)


def kill_below(guard: int) -> bool:
    """Kill what runs below a guard or in its session; return whether any of it may still run. Only Linux lists it."""
    found = below(guard) if LINUX else {}
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return any(state not in "ZX" for state in found.values())


def below(guard: int) -> dict[int, str]:
    """Return the state of each process below a guard or in its session, by id. Z: it has ended and is not reaped.

    The session is what is left of them where the guard itself was killed.
    """
    states: dict[int, str] = {}
    children: dict[int, list[int]] = {}
    to_visit = [guard]
    for name in os.listdir("/proc"):
        with suppress(OSError, ValueError), open(f"/proc/{int(name)}/stat", "rb") as file:
            # A program's name stands in brackets, and may hold any character.
            state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
            states[int(name)] = state.decode()
            children.setdefault(int(parent), []).append(int(name))
            if int(session) == guard:
                to_visit.append(int(name))
    found: set[int] = set()
    while to_visit:
        pid = to_visit.pop()
        found.add(pid)
        to_visit.extend(child for child in children.get(pid, ()) if child not in found)
    return {pid: states[pid] for pid in found if pid != guard and pid in states}


def end_as(status: int) -> None:
    """End as the program did: with its exit status, or by the same signal."""
    if os.WIFSIGNALED(status):
        with suppress(OSError, ValueError):
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def limit(kind: int, most: int) -> None:
    """Lower a limit for good, never above what is allowed already; 0: leave it."""
    if not most:
        return
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main(*sys.argv[1:])
