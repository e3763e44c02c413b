"""Run a program in a jail of its own: `confined_program.py JAIL PROGRAM ARGUMENT…`, JAIL being the JSON of a `Jail`.

The program sees a root directory that is made for it, processes that it started itself, and a network without a way
out. Where this process is root the program runs as a user of its tenant's; elsewhere in a user namespace. Linux alone
has what this needs.

It needs nothing of ours but `jail_watch.py` beside it. Three processes: this one waits; the second is the first process
of the new namespaces, in which it builds the jail, and the end of all that runs there; the third becomes the program.
"""

import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING or __name__ != "__main__":
    from wayline.tool_registry.programs import jail_watch as watch
else:
    # Run by its path, isolated: Python finds nothing that is beside it.
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import jail_watch as watch

LIBC = ctypes.CDLL(None, use_errno=True)
MEGABYTE = 1024 * 1024
NEW_MOUNTS, NEW_CGROUP, NEW_NAME, NEW_IPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
NEW_USER, NEW_PIDS, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
NOSUID, NODEV, NOEXEC, BIND, RECURSIVE, PRIVATE = 0x2, 0x4, 0x8, 0x1000, 0x4000, 0x40000
MOUNT_SETATTR = 442
"""The number of this system call, the same for each kind of processor since Linux 5.12."""
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "s390x": 217, "ppc64le": 203}
ATTR_READ_ONLY, ATTR_NOSUID, ATTR_NODEV = 0x1, 0x2, 0x4
AT_RECURSIVE, AT_FDCWD, DETACH = 0x8000, -100, 0x2
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 0x1
DEVICES = ("null", "zero", "full", "random", "urandom")
STREAMS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
NICE = 10
"""So that our own work comes first where a program takes all of the processor."""
CANNOT_RUN = 127
CANNOT_CONFINE = 251
TOO_MUCH_MEMORY = 252


class Jail(TypedDict):
    """What a program is given."""

    stage: str
    """An empty directory over which the new root is mounted."""
    uid: int | None
    """The user that it becomes, where this process is root."""
    shown: list[str]
    """Files and directories that it may read, where they are."""
    links: dict[str, str]
    """Symbolic links, by their place."""
    kept: dict[str, str]
    """Directories that it may write to, by where it sees them."""
    hidden: list[str]
    """Directories that are shown as empty, within those that it may read."""
    files: dict[str, str]
    """The content of small files, by their place."""
    home: str
    door: str | None
    """A socket that is sent one that listens inside, at `port`: the program's only way out."""
    port: int
    memory_mb: int
    processes_max: int
    cpu_s: int
    tmp_mb: int


def main(text: str, program: str, *arguments: str) -> None:
    """Confine and start the program, wait for it, and end as it did."""
    jail: Jail = json.loads(text)
    reading, writing = os.pipe()
    try:
        own_user_namespace()
        unshare(NEW_PIDS | NEW_MOUNTS | NEW_NETWORK | NEW_IPC | NEW_NAME | NEW_CGROUP)
    except OSError as error:
        fail("it cannot be isolated here", error)
    if os.fork() == 0:
        os.close(reading)
        first_process(jail, writing, program, arguments)
    os.close(writing)
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Not SIG_IGN: the program inherits nothing here, but waiting must go on.
        signal.signal(name, lambda *_: None)
    release_streams()
    said = b""
    while piece := os.read(reading, 16):
        said += piece
    os.wait()
    end_as(int(said) if said else signal.SIGKILL)


def own_user_namespace() -> None:
    """Enter a user namespace in which an ordinary user may do what only root may elsewhere."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        return
    unshare(NEW_USER)
    for name, line in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)


def first_process(jail: Jail, told: int, program: str, arguments: tuple[str, ...]) -> None:
    """Build the jail, start the program in it, and end with all that runs there once the program has ended."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    try:
        open_loopback()
        open_door(jail)
        build(jail)
    except OSError as error:
        os.write(told, str(CANNOT_CONFINE << 8).encode())
        fail("it cannot be isolated here", error)
    sessions = watch.Sessions()
    pid = os.fork()
    if pid == 0:
        os.close(told)
        become(jail, program, arguments, sessions)
    release_streams()
    sessions.grant()
    status = watch.watched(pid, jail["memory_mb"] * MEGABYTE, sessions)
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    os.write(told, str(TOO_MUCH_MEMORY << 8 if status is None else status).encode())
    os._exit(0)


def open_loopback() -> None:
    """Switch the network of the jail on, which leads nowhere."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        name = b"lo".ljust(16, b"\0")
        flags = struct.unpack("16sH", fcntl.ioctl(one, GET_FLAGS, name + b"\0" * 16)[:18])[1]
        fcntl.ioctl(one, SET_FLAGS, struct.pack("16sH14x", name, flags | UP))


def open_door(jail: Jail) -> None:
    """Listen inside of the jail, and send the socket to the registry, which serves it from outside."""
    if jail["door"] is None:
        return
    with socket.socket() as inside, socket.socket(socket.AF_UNIX) as outside:
        inside.bind(("127.0.0.1", jail["port"]))
        inside.listen(64)
        outside.connect(jail["door"])
        socket.send_fds(outside, [b"."], [inside.fileno()])


def build(jail: Jail) -> None:
    """Make a root directory of what is shown and kept, and enter it."""
    # The program is another user where this process is root, whose own files may be closed to others.
    os.umask(0o022)
    mount(None, "/", None, RECURSIVE | PRIVATE)
    root = jail["stage"]
    mount("tmpfs", root, "tmpfs", NOSUID | NODEV, "mode=755,size=4m")
    for place, target in jail["links"].items():
        os.makedirs(os.path.dirname(root + place), exist_ok=True)
        os.symlink(target, root + place)
    # First, for what is shown may lie in /tmp.
    make_devices(root, jail["tmp_mb"])
    for place in jail["shown"]:
        bind(place, root + place, read_only=True)
    for place in jail["hidden"]:
        if os.path.isdir(root + place):
            mount("tmpfs", root + place, "tmpfs", NOSUID | NODEV | NOEXEC, "mode=555,size=4k")
    for place, content in jail["files"].items():
        if not os.path.exists(root + place):
            os.makedirs(os.path.dirname(root + place), exist_ok=True)
            with open(root + place, "w") as file:
                file.write(content)
    for place, source in jail["kept"].items():
        bind(source, root + place, read_only=False)
    make_processes(root)
    libc("mount_setattr", LIBC.syscall(MOUNT_SETATTR, AT_FDCWD, root.encode(), 0, *attributes(ATTR_READ_ONLY)))
    os.chdir(root)
    libc("pivot_root", LIBC.syscall(PIVOT_ROOT[os.uname().machine], b".", b"."))
    libc("umount2", LIBC.umount2(b".", DETACH))
    os.chdir("/")
    socket.sethostname("program")


def bind(source: str, place: str, *, read_only: bool) -> None:
    """Show a file or a directory at a place, without programs that change their user, and without devices."""
    if os.path.isdir(source):
        os.makedirs(place, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if not os.path.exists(place):
            open(place, "w").close()
    mount(source, place, None, BIND | RECURSIVE)
    wanted = attributes(ATTR_NOSUID | ATTR_NODEV | (ATTR_READ_ONLY if read_only else 0))
    libc("mount_setattr", LIBC.syscall(MOUNT_SETATTR, AT_FDCWD, place.encode(), AT_RECURSIVE, *wanted))


def attributes(added: int) -> tuple[object, object]:
    """Return the last two arguments of mount_setattr, which adds attributes."""
    return ctypes.byref((ctypes.c_uint64 * 4)(added, 0, 0, 0)), ctypes.c_size_t(32)


def make_devices(root: str, tmp_mb: int) -> None:
    """Make /dev with what programs need, and the two directories that are in memory."""
    mount_new(root + "/dev", "mode=755,size=64k")
    for name in DEVICES:
        open(f"{root}/dev/{name}", "w").close()
        mount(f"/dev/{name}", f"{root}/dev/{name}", None, BIND)
    for name, target in STREAMS.items():
        os.symlink(target, f"{root}/dev/{name}")
    mount_new(root + "/dev/shm", f"mode=1777,size={tmp_mb}m")
    mount_new(root + "/tmp", f"mode=1777,size={tmp_mb}m")


def make_processes(root: str) -> None:
    """Show the processes of the jail; without any where a container hides some of /proc, which must stay hidden."""
    os.makedirs(root + "/proc", exist_ok=True)
    try:
        mount("proc", root + "/proc", "proc", NOSUID | NODEV | NOEXEC)
    except PermissionError:
        mount_new(root + "/proc", "mode=555,size=4k")


def mount_new(place: str, options: str) -> None:
    os.makedirs(place, exist_ok=True)
    mount("tmpfs", place, "tmpfs", NOSUID | (0 if place.endswith("/dev") else NODEV), options)


def become(jail: Jail, program: str, arguments: tuple[str, ...], sessions: "watch.Sessions") -> None:
    """Replace this process by the program, without any right that the jail's first process has."""
    try:
        limit(resource.RLIMIT_CPU, jail["cpu_s"])
        uid = jail["uid"]
        if uid is not None and os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        drop_capabilities()
        sessions.ask_for_each()
        limit(resource.RLIMIT_NPROC, jail["processes_max"])
        os.nice(NICE)
        os.chdir(jail["home"])
    except OSError as error:
        fail("it cannot be isolated here", error)
    os.umask(0o077)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    try:
        os.execv(program, [program, *arguments])
    except OSError as error:
        os.write(2, f"{program} cannot be run: {error.strerror}\n".encode(errors="replace"))
        os._exit(CANNOT_RUN)


def drop_capabilities() -> None:
    """Give up every right of root's, also for all that this process will run."""
    libc("prctl", LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc("capset", LIBC.capset(ctypes.byref(header), ctypes.byref(none)))


def release_streams() -> None:
    """Let go of the program's streams: they must end with it."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def unshare(namespaces: int) -> None:
    libc("unshare", LIBC.unshare(namespaces))


def mount(source: str | None, place: str, kind: str | None, flags: int, options: str = "") -> None:
    texts = [None if one is None else one.encode() for one in (source, place, kind)]
    libc(f"mount {place}", LIBC.mount(*texts, ctypes.c_ulong(flags), options.encode()))


def libc(what: str, answer: int) -> None:
    """Raise the error of a call of the C library."""
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def limit(kind: int, most: int) -> None:
    """Lower a limit for good, never above what is allowed already; 0: leave it."""
    if most:
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def fail(what: str, error: OSError) -> None:
    """End with a sentence on the error stream."""
    why = errno.errorcode.get(error.errno or 0, "")
    os.write(2, f"{what}: {error.strerror} ({why})\n".encode(errors="replace"))
    os._exit(CANNOT_CONFINE)


def end_as(status: int) -> None:
    """End as the program did: with its exit status, or by the same signal."""
    if os.WIFSIGNALED(status):
        with suppress(OSError, ValueError):
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main(*sys.argv[1:])
