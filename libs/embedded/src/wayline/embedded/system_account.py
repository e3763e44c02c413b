"""Postgres refuses to run as root: choose the account it runs under, and see what that account can reach."""

import os
import pwd
import stat
from pathlib import Path

from wayline.embedded.errors import NoAccount
from wayline.embedded.process import Account

# The first that exists; both are on every Debian, Alpine and Red Hat image that matters to us, `nobody` everywhere.
CANDIDATES = ("postgres", "nobody")


def account_for(data: Path) -> Account | None:
    """Return the account for a server whose data is in `data`; None when the present user will do."""
    if os.geteuid() != 0:
        return None
    # Who owned the data last time keeps it, whatever accounts were added to the machine since.
    owner = data.stat().st_uid if data.exists() else 0
    entry = _entry_of(owner) or _first_candidate()
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)


def closed_on_the_way(*wanted: Path, account: Account) -> Path | None:
    """Return the first directory on the way to any of these that the account may not enter; None when it can pass."""
    # Each directory is resolved once, not once for each of the hundreds of files in it.
    within = {path.resolve().parent if path.is_symlink() else path.parent for path in wanted}
    parents = {directory for one in map(Path.resolve, within) for directory in (one, *one.parents)}
    return next((path for path in sorted(parents) if not _allowed(path.stat(), account, others=stat.S_IXOTH)), None)


def may_read(of: os.stat_result, account: Account) -> bool:
    """Return whether the account may read a file, or list and enter a directory."""
    needed = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(of.st_mode) else 0)
    return _allowed(of, account, others=needed)


def give(path: Path, *, account: Account) -> None:
    """Make the account the owner of a file, or of a directory and all it holds."""
    os.chown(path, account.uid, account.gid)
    for entry in path.rglob("*"):
        os.chown(entry, account.uid, account.gid, follow_symlinks=False)


def _allowed(of: os.stat_result, account: Account, *, others: int) -> bool:
    """Return whether the account has the rights that `others` names by their bits for other users."""
    if of.st_uid == account.uid:
        wanted = others << 6
    elif of.st_gid == account.gid:
        wanted = others << 3
    else:
        wanted = others
    return of.st_mode & wanted == wanted


def _entry_of(uid: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(uid) if uid else None
    except KeyError:
        return None


def _first_candidate() -> pwd.struct_passwd:
    for name in CANDIDATES:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise NoAccount(candidates=CANDIDATES)
