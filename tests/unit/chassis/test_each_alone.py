"""Of several rows a bad one stops none of the others."""

from __future__ import annotations

import asyncio

import pytest

from wayline.chassis.concurrency.each_alone import each_alone
from wayline.contracts.errors import Unavailable


class Rows:
    """Rows of which some cannot be done, or not even marked."""

    def __init__(self, *, bad: str = "", unmarkable: str = "", away: str = "") -> None:
        self.done: list[str] = []
        self.marked: dict[str, str] = {}
        self._bad, self._unmarkable, self._away = bad, unmarkable, away

    async def do(self, row: str) -> None:
        if row in self._away:
            raise Unavailable("Postgres")
        if row in self._bad:
            raise KeyError(row)
        self.done.append(row)

    async def mark(self, row: str, why: str) -> None:
        if row in self._unmarkable:
            raise ValueError(f"{row} has no place for a mark")
        self.marked[row] = why


async def test_a_bad_row_is_marked_and_the_others_go_on():
    rows = Rows(bad="b")

    await each_alone("row", "abc", rows.do, mark=rows.mark)

    assert rows.done == ["a", "c"]
    assert rows.marked == {"b": "KeyError: 'b'"}


async def test_a_row_that_cannot_be_marked_stops_no_other():
    rows = Rows(bad="bc", unmarkable="b")

    await each_alone("row", "abcd", rows.do, mark=rows.mark)

    assert rows.done == ["a", "d"]
    assert list(rows.marked) == ["c"]


async def test_what_is_away_for_one_row_is_away_for_all():
    rows = Rows(away="b")

    with pytest.raises(Unavailable):
        await each_alone("row", "abc", rows.do, mark=rows.mark)

    assert rows.done == ["a"]
    assert rows.marked == {}


async def test_so_many_rows_are_done_beside_each_other_and_no_more():
    running, most, done = 0, 0, list[int]()

    async def do(row: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        done.append(row)

    await each_alone("row", range(100), do, beside=4)

    assert (sorted(done), most) == ([*range(100)], 4)


async def test_a_bad_row_beside_others_stops_none_of_them():
    rows, away = Rows(bad="c"), Rows(away="b")

    await each_alone("row", "abcdefgh", rows.do, mark=rows.mark, beside=3)
    with pytest.raises(Unavailable):
        await each_alone("row", "abc", away.do, beside=3)

    assert (rows.done, [*rows.marked]) == ([*"abdefgh"], ["c"])
