"""A job and the jobs that it started, as a tree with what each cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text
from rich.tree import Tree

from wayline.standalone.terminal.job_views import job_details, status
from wayline.standalone.terminal.money_views import usd

if TYPE_CHECKING:
    from wayline.client import Client

FAMILY_MAX = 200
"""Jobs of one tree that are read; of those behind them only what their parents know is shown."""


@dataclass(frozen=True)
class Member:
    """A job of a family, and the jobs that it started."""

    job: dict[str, Any]
    """As the gateway shows it; where it has no log yet, or where there are too many, what its parent knows of it."""
    children: tuple[Member, ...] = ()

    def __iter__(self) -> Iterator[Member]:
        yield self
        for child in self.children:
            yield from child


async def read_family(client: Client, job: dict[str, Any]) -> Member:
    """Read the jobs that a job started, and those that they started, until there are too many."""
    return await _Reader(client).member(job)


class _Reader:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._left = FAMILY_MAX

    async def member(self, job: dict[str, Any]) -> Member:
        return Member(job, tuple([await self._child(child) for child in job["children"]]))

    async def _child(self, known: dict[str, Any]) -> Member:
        from wayline.client import ApiError

        self._left -= 1
        try:
            return Member(known) if self._left < 0 else await self.member(await self._client.job(known["job_id"]))
        except ApiError:
            # Its parent has recorded that it asked for it, and it has no log yet.
            return Member(known)


def job_with_family(job: dict[str, Any], steps: Sequence[dict[str, Any]], family: Member) -> RenderableType:
    """Draw everything about a job, and the jobs that it started as a tree, each with its status and its own cost."""
    details = job_details(job, steps)
    if not family.children:
        return details
    tree = Tree("[bold]started[/bold]")
    _grow(tree, family)
    return Group(details, Text(""), tree, Text(family_cost(family)))


def family_cost(family: Member) -> str:
    """Format what all jobs of a family cost together."""
    costs = [member.job["cost_usd"] for member in family]
    total = usd(str(sum((Decimal(cost) for cost in costs if cost is not None), Decimal(0))))
    unknown = costs.count(None)
    more = f" and the unknown cost of {unknown} of them" if unknown else ""
    return f"{len(costs)} jobs together: {total}{more}"


def _grow(tree: Tree, member: Member) -> None:
    for child in member.children:
        job = child.job
        words = [escape(job["agent"]), escape(job["job_id"]), status(job["status"] or "running"), usd(job["cost_usd"])]
        _grow(tree.add("  ".join(words)), child)
