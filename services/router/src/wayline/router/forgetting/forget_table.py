"""Requests to forget in Postgres: how far each is, its jobs, and what each store had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from wayline.contracts.errors import Reject
from wayline.contracts.forgetting import Erased, Forget, StoreReceipt
from wayline.store import Queries, Record, Store

CLAIMED_S = 10.0
"""How long a request that a router works on is left to it; one that takes longer says so in between."""
CLAIMED_AT_ONCE = 4
OPEN_MAX = 100
"""Requests of one tenant that are under way."""


class JobToStop(NamedTuple):
    """A job of which it is not known yet whether it has ended."""

    job_id: str
    is_settled: bool
    is_old: bool
    """Its log would be there by now."""


class ForgetTable:
    """One row a request, one a job of it, one for each store and batch of jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = Queries.load(files("wayline.router.forgetting").joinpath("queries.sql"))

    async def begin(self, asked: Forget, forget_id: str, *, name_sha256: str, look_after_s: float) -> Record:
        """Begin a request, or return the one of the same name that is under way. Raises Reject: too many are."""
        if await self._store.fetchval(asked.tenant, self._sql.count_open, asked.tenant, name_sha256) >= OPEN_MAX:
            raise Reject(f"{OPEN_MAX} requests to forget are under way: wait", code="too_many_forgets", status=429)
        what = "user" if asked.user_id is not None else "job" if asked.job_id is not None else "subject"
        subject = (None, None) if asked.subject_ref is None else (asked.subject_ref.type, asked.subject_ref.id)
        row = (forget_id, what, asked.user_id, asked.job_id, *subject, name_sha256, asked.asked_by, look_after_s)
        while True:
            begun = await self._store.fetchrow(asked.tenant, self._sql.begin_forget, asked.tenant, *row)
            # In a statement of its own: one that met another's new row does not see it.
            begun = begun or await self._store.fetchrow(asked.tenant, self._sql.open_forget, asked.tenant, name_sha256)
            if begun is not None:
                return begun

    async def cut_submissions(self, row: Record, *, upto: int) -> None:
        """Note once which submissions are forgotten, too; later ones wait until that is done."""
        await self._change(self._sql.cut_submissions, row, upto)

    async def get(self, tenant: str, forget_id: str) -> Record | None:
        """Return a request; None: there is none."""
        return await self._store.fetchrow(tenant, self._sql.get_forget, tenant, forget_id)

    async def receipt(self, tenant: str, forget_id: str) -> tuple[StoreReceipt, ...]:
        """Return what each store had, summed over all batches."""
        found: dict[str, StoreReceipt] = {}
        for row in await self._store.fetch(tenant, self._sql.receipt_of, tenant, forget_id):
            before = found.get(row["store"], StoreReceipt(store=row["store"], counts={}))
            erased = [at for at in (before.erased_at, row["erased_at"]) if at is not None]
            found[row["store"]] = StoreReceipt(
                store=row["store"],
                counts=added(before.counts, row["counts"]),
                kept=added(before.kept, row["kept"]),
                erased_at=max(erased, default=None),
            )
        return tuple(found.values())

    async def jobs_erased(self, row: Record) -> int:
        """Return of how many jobs all stores have been gone through."""
        if row["step"] in ("searching", "done"):
            return row["jobs"]
        return (await self._fetch(self._sql.jobs_erased, row))[0]["count"]

    async def open_users(self) -> dict[tuple[str, str], int | None]:
        """Return the users who are being forgotten, and the last submission that belongs to it."""
        async with self._store.system() as conn:
            rows = await conn.fetch(self._sql.open_users)
        return {(row["tenant"], row["user_id"]): row["submitted_upto"] for row in rows}

    async def claim(self) -> list[Record]:
        """Take requests that are due; another router takes them again where this one dies."""
        async with self._store.system() as conn:
            return await conn.fetch(self._sql.claim_due, CLAIMED_S, CLAIMED_AT_ONCE)

    async def keep_claim(self, row: Record) -> None:
        """Say that a request is still worked on."""
        await self._change(self._sql.keep_claim, row, CLAIMED_S)

    async def wait(self, row: Record, waits_for: str, *, again_after_s: float) -> None:
        """Note what a request waits for."""
        await self._change(self._sql.wait_on, row, waits_for, again_after_s)

    async def list_jobs(self, row: Record) -> None:
        """Note the jobs that a request is about; those that are noted stay as they are."""
        await self._change(self._sql.list_jobs, row, row["user_id"], row["job_id"])

    async def jobs_to_stop(self, row: Record, *, old_after_s: float) -> list[JobToStop]:
        """Return the jobs of which it is not known yet whether they have ended."""
        found = await self._fetch(self._sql.unbatched_jobs, row, old_after_s)
        return [JobToStop(*values) for values in found]

    async def begin_erasing(self, row: Record, *, batch_max: int, samples: Sequence[str]) -> None:
        """Put the jobs into batches, and note which texts are searched for at the end."""
        await self._change(self._sql.begin_erasing, row, batch_max, list(samples))

    async def batches(self, row: Record) -> list[tuple[int, tuple[str, ...]]]:
        """Return the batches of jobs."""
        return [(one["batch"], tuple(one["jobs"])) for one in await self._fetch(self._sql.batches_of, row)]

    async def count_of(self, row: Record, store: str, batch: int) -> Record | None:
        """Return what a store had of a batch; None: it was not counted."""
        return await self._store.fetchrow(
            row["tenant"], self._sql.count_of, row["tenant"], row["forget_id"], store, batch
        )

    async def note_count(self, row: Record, store: str, batch: int, found: Erased) -> None:
        """Note what a store has of a batch, before it is erased."""
        await self._change(self._sql.note_count, row, store, batch, found.counts, found.kept)

    async def note_erased(self, row: Record, store: str, batch: int) -> None:
        """Note that a store has erased a batch."""
        await self._change(self._sql.note_erased, row, store, batch)

    async def begin_searching(self, row: Record) -> None:
        """Note that all is erased, and is searched for next."""
        await self._change(self._sql.begin_searching, row)

    async def begin_again(self, row: Record, left: Mapping[str, int], *, after_s: float) -> None:
        """Note what was left, and begin another round."""
        await self._change(self._sql.begin_again, row, dict(left), after_s)

    async def end(self, row: Record, left: Mapping[str, int], *, sweep_after_s: float) -> None:
        """End a request: from now on it names nobody."""
        await self._change(self._sql.end_forget, row, dict(left), sweep_after_s)

    async def end_sweep(self, row: Record) -> None:
        """Forget the jobs of a request that is done."""
        await self._change(self._sql.end_sweep, row)

    async def _change(self, sql: str, row: Record, *more: object) -> None:
        await self._store.execute(row["tenant"], sql, row["tenant"], row["forget_id"], *more)

    async def _fetch(self, sql: str, row: Record, *more: object) -> list[Record]:
        return await self._store.fetch(row["tenant"], sql, row["tenant"], row["forget_id"], *more)


def added(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of two counts by name."""
    return {name: counts.get(name, 0) + more.get(name, 0) for name in (*counts, *(n for n in more if n not in counts))}
