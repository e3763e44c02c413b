"""Watch what runs in a jail: end it for its memory, and bound the sessions that it begins.

A file of its own that needs nothing of ours, loaded by `confined_program.py` beside it.
"""

import ctypes
import errno
import os
import platform
import resource
import signal
import socket
import struct
import threading
import time
from contextlib import suppress
from fcntl import ioctl

LIBC = ctypes.CDLL(None, use_errno=True)
WATCH_S = 0.5
"""How often the memory of all processes is added up."""
SESSIONS_MAX = 16
"""Sessions that a jail may have at once. One that begins more is told that it may not (EPERM)."""
FIRST_NICE, FURTHER_NICE = 5, 15
"""Of the program's first session, and of each that it begins. Where Linux shares the processor by sessions, a priority
counts within one alone, and a program that begins many would have as many shares: so the first has a third of ours,
and all others together have about half of it."""
SETTLES_S = 0.02
"""How long a session that was begun has until it is lowered, and the next is granted."""
SECCOMP = {"x86_64": 317, "aarch64": 277}
"""The number of this system call."""
SETSID = {
    "x86_64": ((0xC000003E, 112), (0xC000003E, 0x40000070), (0x40000003, 66)),
    "aarch64": ((0xC00000B7, 157), (0x40000028, 66)),
}
"""By the processor, the numbers of the system call that begins a session, each with the architecture that it is of."""
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ASK = 0x7FFF0000, 0x7FC00000
SET_FILTER, NEW_LISTENER, SPECULATE = 1, 8, 4
RECEIVE, SEND, CONTINUE = 0xC0502100, 0xC0182101, 1


class Sessions:
    """Grants the sessions of a jail: asked for each one by the kernel, which holds its caller until the answer."""

    def __init__(self) -> None:
        self._ours, self._programs = socket.socketpair()
        self._lowered: set[str] = set()

    def ask_for_each(self) -> None:
        """Have every session asked for that this process and those after it begin; for good. Called by the program.

        Nothing is asked where this processor is not known, or another has the kernel's questions already.
        """
        with suppress(OSError):
            if (listener := _listener()) is not None:
                socket.send_fds(self._programs, [b"."], [listener])
                os.close(listener)
        self._programs.close()
        self._ours.close()

    def grant(self) -> None:
        """Answer on a thread from now on. Called by the first process, once the program is forked."""
        self._programs.close()
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        _, listeners, _, _ = socket.recv_fds(self._ours, 1, 1)
        if not listeners:
            return
        asked, granted = bytearray(80), set[str]()
        while True:
            asked[:] = bytes(len(asked))
            try:
                ioctl(listeners[0], RECEIVE, asked)
                number, caller = struct.unpack_from("QI", asked)
                # One that was granted counts by its leader-to-be, which may not have gone on yet.
                granted.intersection_update(processes())
                refused = len(granted.union(sessions())) >= SESSIONS_MAX
                if not refused:
                    granted.add(str(caller))
                answer = (number, 0, -errno.EPERM, 0) if refused else (number, 0, 0, CONTINUE)
                ioctl(listeners[0], SEND, struct.pack("QqiI", *answer))
            except OSError as error:
                # Its caller has been killed, or the call was interrupted; otherwise nobody is left to ask.
                if error.errno not in (errno.ENOENT, errno.EINTR):
                    return
            else:
                # The next one waits so long: at no time there are many that are not lowered.
                time.sleep(SETTLES_S)
                self.lower()

    def lower(self) -> None:
        """Let our own work come before the sessions of this jail."""
        for name in processes():
            with suppress(OSError), open(f"/proc/{name}/autogroup", "r+b", buffering=0) as file:
                # As in `/autogroup-17 nice 0`.
                group = file.read().decode().partition(" nice ")[0]
                if group not in self._lowered:
                    file.write(str(FURTHER_NICE if self._lowered else FIRST_NICE).encode())
                    self._lowered.add(group)


def _listener() -> int | None:
    """Make the kernel ask before a session is begun; return where it asks, None: this processor is not known."""
    machine = platform.machine()
    if machine not in SETSID:
        return None
    lines = [(RETURN, 0, 0, ALLOW)]
    for architecture, number in SETSID[machine]:
        # Backwards: each block goes on to what is below it.
        lines = [
            (LOAD, 0, 0, 4),
            (IF_EQUAL, 0, 3, architecture),
            (LOAD, 0, 0, 0),
            (IF_EQUAL, 0, 1, number),
            (RETURN, 0, 0, ASK),
            *lines,
        ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code))
    listener = LIBC.syscall(SECCOMP[machine], SET_FILTER, NEW_LISTENER | SPECULATE, program)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return listener


def watched(program: int, memory_max: int, granted: Sessions) -> int | None:
    """Return how the program ended; None: all that runs here takes more memory than it may."""
    while True:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == program:
                    return ended[1]
        signal.sigtimedwait({signal.SIGCHLD}, WATCH_S)
        granted.lower()
        # The second way is exact, and takes longer: what forks share counts once.
        if memory_max and most_memory() > memory_max and exact_memory() > memory_max:
            return None


def most_memory() -> int:
    """Return the bytes that the processes of this jail hold, at most: each counted as if it shared none."""
    pages = 0
    for name in processes():
        with suppress(OSError, ValueError), open(f"/proc/{name}/statm") as file:
            _, resident, shared = file.read().split()[:3]
            pages += int(resident) - int(shared)
    return pages * resource.getpagesize()


def exact_memory() -> int:
    """Return the bytes that the processes of this jail hold together, without those of files."""
    kilobytes = 0
    for name in processes():
        with suppress(OSError, ValueError), open(f"/proc/{name}/smaps_rollup") as file:
            for line in file:
                if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                    kilobytes += int(line.split()[1])
    return kilobytes * 1024


def sessions() -> list[str]:
    """Return the session of each process of this jail."""
    found: list[str] = []
    for name in processes():
        with suppress(OSError), open(f"/proc/{name}/stat") as file:
            # Behind the name of its program, which may hold anything: state, parent, group, session.
            found.append(file.read().rpartition(")")[2].split()[3])
    return found


def processes() -> list[str]:
    """Return the ids of what runs in this jail beside this process."""
    return [name for name in os.listdir("/proc") if name.isdecimal() and name != "1"]
