"""A page begins behind a cursor and ends in the next one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.contracts.errors import Reject
from wayline.gateway.paging import (
    Page,
    after_moment,
    after_number,
    after_numbered_moment,
    behind,
    cursor_of,
    moment_key,
    page_in_order,
    page_of,
)

NAMES = st.lists(st.text(alphabet="abé-_/9 ", min_size=1, max_size=5), unique=True, max_size=20)


def own(item: str) -> str:
    return item


def all_pages(page: Page[str] | None, more: list[Page[str]]) -> list[str]:
    return [item for one in ([page] if page else []) + more for item in one.items]


@given(names=NAMES, limit=st.integers(1, 5))
def test_pages_of_a_list_hold_each_item_once_and_in_order(names: list[str], limit: int):
    pages, cursor = list[Page[str]](), None
    while not pages or cursor is not None:
        pages.append(page_of(names, limit=limit, cursor=cursor, key=own))
        cursor = pages[-1].next_cursor

    assert all_pages(None, pages) == sorted(names)
    assert all(len(page.items) == limit for page in pages[:-1])


def test_what_is_deleted_between_two_pages_hides_nothing_else():
    first = page_of(["a", "b", "c", "d"], limit=2, cursor=None, key=own)

    second = page_of(["c", "d"], limit=2, cursor=first.next_cursor, key=own)

    assert (first.items, second.items, second.next_cursor) == (("a", "b"), ("c", "d"), None)


def test_a_list_in_its_own_order_goes_on_behind_an_item():
    first = page_in_order(["c", "a", "b"], limit=2, cursor=None, key=own)

    assert page_in_order(["c", "a", "b"], limit=2, cursor=first.next_cursor, key=own).items == ("b",)
    with pytest.raises(Reject, match="no cursor of this list"):
        page_in_order(["c", "b"], limit=2, cursor=first.next_cursor, key=own)


@pytest.mark.parametrize("answered", [["c", "d", "e"], ["a", "b", "c", "d", "e"]], ids=["cut", "whole"])
def test_a_list_that_its_service_cut_pages_alike(answered: list[str]):
    page = behind(answered, "b", limit=2, key=own)

    assert page.items == ("c", "d") and page.next_cursor is not None


@pytest.mark.parametrize("cursor", ["ä", "_w", "A", "AA"])
def test_what_is_no_cursor_is_refused(cursor: str):
    with pytest.raises(Reject, match="next_cursor"):
        page_of(["a"], limit=1, cursor=cursor, key=own)


def test_a_cursor_of_moments_stands_for_its_moment_and_name():
    at = datetime(2026, 11, 26, 16, tzinfo=UTC)

    assert after_moment(cursor_of(moment_key(at, "a b"))) == (at, "a b")
    assert after_numbered_moment(cursor_of(moment_key(at, "7"))) == (at, 7)
    assert after_numbered_moment(None) == (None, None)
    assert after_number(cursor_of("12")) == 12


@pytest.mark.parametrize(
    "key",
    ["x 1", "2026-01-01T00:00:00 1", "0001-01-01T00:00:00+23:00 1", "9999-12-31T23:59:59-23:00 1", "2026-01-01 \x00"],
)
def test_a_cursor_whose_moment_no_table_takes_is_refused(key: str):
    for read in (after_moment, after_numbered_moment):
        with pytest.raises(Reject, match="next_cursor"):
            read(cursor_of(key))


@pytest.mark.parametrize("number", ["", "0", "-1", "1.5", "٣", "9" * 19, "9" * 400])
def test_a_cursor_whose_number_no_table_takes_is_refused(number: str):
    for read, key in ((after_number, number), (after_numbered_moment, f"2026-01-01T00:00:00+00:00 {number}")):
        with pytest.raises(Reject, match="next_cursor"):
            read(cursor_of(key))
