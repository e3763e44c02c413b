"""Postgres refuses to run as root: choose the account it runs under, and check that it can get there."""

import os
import pwd
import stat
from dataclasses import replace
from pathlib import Path

from wayline.embedded.errors import Unreachable
from wayline.embedded.process import Account

# The first that exists; both are on every Debian, Alpine and Red Hat image that matters to us, `nobody` everywhere.
CANDIDATES = ("postgres", "nobody")
# CAP_DAC_READ_SEARCH if we have it; a container's root has CAP_DAC_OVERRIDE at least.
PASSING_CAPABILITIES = (2, 1)


def account_for(data: Path) -> Account | None:
    """The account for a server whose data is in `data`; None when the present user will do."""
    if os.geteuid() != 0:
        return None
    # Who owned the data last time keeps it, whatever accounts were added to the machine since.
    owner = data.stat().st_uid if data.exists() else 0
    entry = pwd.getpwuid(owner) if owner else _first_candidate()
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)


def able_to_reach(*wanted: Path, account: Account) -> Account:
    """The account, with the right to pass closed directories only when one is on the way (root's home often is)."""
    for path in wanted:
        for directory in reversed(path.resolve().parents):
            if not _may_enter(directory.stat(), account):
                passing = next((number for number in PASSING_CAPABILITIES if _root_has(number)), None)
                if passing is None:
                    raise Unreachable(directory=directory, wanted=path, account=account.name)
                return replace(account, keeps=passing)
    return account


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


def _root_has(capability: int) -> bool:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return False
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> capability & 1)


def _first_candidate() -> pwd.struct_passwd:
    for name in CANDIDATES:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise LookupError(f"Postgres refuses to run as root, and none of the accounts {CANDIDATES} exists")
