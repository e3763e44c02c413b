"""Deletions: what is not there cannot be deleted, whatever it is."""

from __future__ import annotations

from typing import Protocol, TypeVar

from wayline.contracts.errors import NotFound


class Deletion(Protocol):
    """An answer to a deletion."""

    @property
    def deleted(self) -> bool: ...


D = TypeVar("D", bound=Deletion)


def was_there(deletion: D, what: str, name: str) -> D:
    """Return the deletion of something that was there. Raises NotFound."""
    if not deletion.deleted:
        raise NotFound(what, name)
    return deletion
