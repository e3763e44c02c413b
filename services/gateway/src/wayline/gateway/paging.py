"""One style of pages for every list: `limit` and `cursor` in, `next_cursor` out. Pure."""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final, Generic, TypeAlias, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field

from wayline.contracts.errors import Reject

PAGE_MAX: Final = 1_000
CURSOR_CHARS_MAX: Final = 512
NAME_MAX: Final = 64
NUMBER_MAX: Final = 2**63 - 1
"""The largest number that numbers what is listed."""

T = TypeVar("T")

PageLimit: TypeAlias = Annotated[int, Query(ge=1, le=PAGE_MAX, description="How many on a page.")]
PageCursor: TypeAlias = Annotated[
    str | None, Query(max_length=CURSOR_CHARS_MAX, description="`next_cursor` of the page before.")
]


class Paged(BaseModel):
    """A page of a list."""

    next_cursor: str | None = Field(default=None, description="The `cursor` of the next page; null: there is none.")


class Page(Generic[T]):
    """Some items of a list, and where the next page begins."""

    def __init__(self, items: Sequence[T], next_cursor: str | None) -> None:
        self.items = tuple(items)
        self.next_cursor = next_cursor


def page_of(items: Sequence[T], *, limit: int, cursor: str | None, key: Callable[[T], str]) -> Page[T]:
    """Return the page behind a cursor, of items that are sorted here by a key that no two share.

    What is added or deleted between two pages moves no other item onto another page. Raises Reject.
    """
    after = None if cursor is None else after_cursor(cursor)
    behind = sorted((item for item in items if after is None or key(item) > after), key=key)
    return first_page(behind, limit=limit, key=key)


def page_in_order(items: Sequence[T], *, limit: int, cursor: str | None, key: Callable[[T], str]) -> Page[T]:
    """Return the page behind a cursor, of items whose order says something. Raises Reject where its item is gone."""
    if cursor is None:
        return first_page(items, limit=limit, key=key)
    after = after_cursor(cursor)
    places = [place for place, item in enumerate(items) if key(item) == after]
    if not places:
        raise wrong_cursor(cursor)
    return first_page(items[places[0] + 1 :], limit=limit, key=key)


def behind(items: Sequence[T], after: str, *, limit: int, key: Callable[[T], str]) -> Page[T]:
    """Return the page behind a key, of items that their service may have cut there already."""
    places = [place + 1 for place, item in enumerate(items) if key(item) == after]
    return first_page(items[places[0] :] if places else items, limit=limit, key=key)


def first_page(items: Sequence[T], *, limit: int, key: Callable[[T], str]) -> Page[T]:
    """Return the first page of items that lie behind a cursor already, in their order."""
    shown = items[:limit]
    return Page(shown, cursor_of(key(shown[-1])) if len(items) > limit else None)


def moment_key(at: datetime, name: str) -> str:
    """Return the key of what is listed newest first, and of the same moment by name."""
    return f"{at.isoformat()} {name}"


def after_moment(cursor: str | None) -> tuple[datetime | None, str | None]:
    """Return the moment and the name that a cursor stands for; nothing: the list's beginning. Raises Reject."""
    if cursor is None:
        return None, None
    text, _, name = after_cursor(cursor).partition(" ")
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise wrong_cursor(cursor) from None
    # As our own cursors have it: another offset may lead to a year that no table takes.
    if at.utcoffset() != timedelta(0):
        raise wrong_cursor(cursor)
    return at, name


def after_name(cursor: str | None) -> str:
    """Return the name that a cursor of a list by name stands for; empty: the list's beginning. Raises Reject."""
    if cursor is None:
        return ""
    name = after_cursor(cursor)
    # A cursor of another list may stand for more than any name: the services refuse that as no request of theirs.
    if len(name) > NAME_MAX:
        raise wrong_cursor(cursor)
    return name


def after_number(cursor: str, *, most: int = NUMBER_MAX) -> int:
    """Return the number, of one at least, that a cursor stands for. Raises Reject."""
    return _number(after_cursor(cursor), cursor, most)


def after_numbered_moment(cursor: str | None) -> tuple[datetime | None, int | None]:
    """Return the moment and the number that a cursor stands for; nothing: the list's beginning. Raises Reject."""
    at, number = after_moment(cursor)
    return at, None if cursor is None else _number(number or "", cursor, NUMBER_MAX)


def _number(text: str, cursor: str, most: int) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= most:
        raise wrong_cursor(cursor)
    return int(text)


def cursor_of(key: str) -> str:
    """Return the cursor of what comes behind a key."""
    return urlsafe_b64encode(key.encode()).decode().rstrip("=")


def after_cursor(cursor: str) -> str:
    """Return the key that a cursor stands for. Raises Reject."""
    try:
        padded = f"{cursor}{'=' * (-len(cursor) % 4)}".encode()
        text = b64decode(padded, altchars=b"-_", validate=True).decode()
    except (ValueError, NotBase64):
        raise wrong_cursor(cursor) from None
    if "\x00" in text:
        raise wrong_cursor(cursor)
    return text


def wrong_cursor(cursor: str) -> Reject:
    """Return the refusal of what is no cursor of a list."""
    return Reject(f"{cursor!r} is no cursor of this list: use `next_cursor` of a page", code="invalid_cursor")
