"""Postgres refuses to run as root: choose the account it runs under, and check that it can get there."""

import os
import pwd
import stat
from pathlib import Path

from wayline.embedded.errors import Unreachable
from wayline.embedded.process import Account

# The first that exists; both are on every Debian, Alpine and Red Hat image that matters to us, `nobody` everywhere.
CANDIDATES = ("postgres", "nobody")


def account_for(data: Path) -> Account | None:
    """The account for a server whose data is in `data`; None when the present user will do."""
    if os.geteuid() != 0:
        return None
    # Who owned the data last time keeps it, whatever accounts were added to the machine since.
    owner = data.stat().st_uid if data.exists() else 0
    entry = pwd.getpwuid(owner) if owner else _first_candidate()
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)


def require_reachable(wanted: Path, *, account: Account) -> None:
    """Refuse a path on which a directory keeps the account out."""
    for directory in reversed(wanted.resolve().parents):
        if not _may_enter(directory.stat(), account):
            raise Unreachable(directory=directory, wanted=wanted, account=account.name)


def give(path: Path, *, account: Account) -> None:
    """Make the account the owner of a file, or of a directory and all it holds."""
    os.chown(path, account.uid, account.gid)
    for entry in path.rglob("*"):
        os.chown(entry, account.uid, account.gid, follow_symlinks=False)


def _may_enter(of: os.stat_result, account: Account) -> bool:
    if of.st_uid == account.uid:
        return bool(of.st_mode & stat.S_IXUSR)
    if of.st_gid == account.gid:
        return bool(of.st_mode & stat.S_IXGRP)
    return bool(of.st_mode & stat.S_IXOTH)


def _first_candidate() -> pwd.struct_passwd:
    for name in CANDIDATES:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise LookupError(f"Postgres refuses to run as root, and none of the accounts {CANDIDATES} exists")
