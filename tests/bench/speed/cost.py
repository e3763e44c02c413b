"""What processes have used, as the kernel counts it: CPU time and memory."""

from __future__ import annotations

import os
from pathlib import Path

TICK_MS = 1_000 / os.sysconf("SC_CLK_TCK")
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1024**2


def cpu_ms(pid: int) -> float:
    """CPU time of a process and of those of its children that have ended."""
    fields = _stat(pid)
    return sum(int(field) for field in fields[11:15]) * TICK_MS


def tree_cpu_ms(pid: int) -> float:
    """The same with the children that still live."""
    return cpu_ms(pid) + sum(tree_cpu_ms(child) for child in children(pid))


def rss_mb(pid: int) -> float:
    return int(_stat(pid)[21]) * PAGE_MB


def tree_rss_mb(pid: int) -> float:
    """Memory of a process and its children, pages that they share counted each time."""
    return rss_mb(pid) + sum(tree_rss_mb(child) for child in children(pid))


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in found.split()]


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the third on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return ["0"] * 50
