"""While Postgres is away, what was approved stays approved, and nothing else becomes so."""

from __future__ import annotations

from typing import Any, cast

import pytest

from wayline.store import PostgresUnavailable
from wayline.tool_registry.definitions.definition_table import DefinitionTable, ServerPins
from wayline.tool_registry.definitions.definitions import CHANGED, Definition, Pins
from wayline.tool_registry.errors import NotBegun

PAY, OTHER = Definition("pay", "a", "{}"), Definition("pay", "b", "{}")


class Table:
    """A table that may be away."""

    def __init__(self, pins: Pins | None) -> None:
        self.found = pins
        self.away = False

    async def pins(self, *_: Any) -> Pins | None:
        if self.away:
            raise PostgresUnavailable(where="here", cause="away")
        return self.found


def pins_of(table: Table) -> ServerPins:
    return ServerPins(cast("DefinitionTable", table), "acme", "bank")


async def test_nothing_is_offered_that_was_never_compared():
    table = Table(None)
    table.away = True

    with pytest.raises(NotBegun, match="Postgres is away"):
        await pins_of(table).withheld([PAY])


async def test_what_was_read_last_counts_while_postgres_is_away():
    table = Table(Pins(begun=True, approved={"pay": "a"}, waiting={}))
    pins = pins_of(table)
    assert await pins.withheld([PAY]) == {}

    table.away = True

    assert await pins.withheld([PAY]) == {}
    assert await pins.withheld([OTHER]) == {"pay": CHANGED}


async def test_a_removed_server_offers_nothing():
    with pytest.raises(NotBegun, match="removed"):
        await pins_of(Table(None)).withheld([PAY])
