"""Count the bytes of answers that are held in memory at once, for each tenant, and keep their pace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wayline.tool_registry.connection.http.pace import Pace

TOO_MANY = "answers of other calls take up all the memory that this tenant's may"


class BytesInFlight:
    """How many bytes of answers one tenant's servers have sent that are not read yet."""

    def __init__(self, most: int, *, pace: Pace | None = None) -> None:
        self._left = most
        self.pace = pace or Pace()
        """How much work all of them may make."""

    @contextmanager
    def holding(self) -> Iterator[HeldBytes]:
        """Yield what counts the bytes of one answer, and give them back."""
        held = HeldBytes(self)
        try:
            yield held
        finally:
            held.give_back()

    def take(self, count: int) -> bool:
        """Return whether so many bytes more may be held."""
        if count > self._left:
            return False
        self._left -= count
        return True

    def give_back(self, count: int) -> None:
        """Let others hold so many bytes."""
        self._left += count


@dataclass
class HeldBytes:
    """The bytes of one answer."""

    of: BytesInFlight
    taken: int = 0

    def take(self, count: int) -> bool:
        """Return whether so many bytes more may be held, and count them."""
        if not self.of.take(count):
            return False
        self.taken += count
        return True

    def give_back(self) -> None:
        """Hold none of them any more."""
        self.of.give_back(self.taken)
        self.taken = 0
