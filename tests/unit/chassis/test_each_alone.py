"""Of several rows a bad one stops none of the others."""

from __future__ import annotations

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
