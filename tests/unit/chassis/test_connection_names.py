"""What the name of a service's connection says is read again, also from names of older versions."""

from __future__ import annotations

import itertools

import pytest

from wayline.chassis import BusSettings
from wayline.chassis.connection.connecting import ConnectionName, Link

NAMES = [
    ConnectionName("router", *parts)
    for parts in itertools.product(
        ("", "0.2.0", "0.2.0 (0123abc)"), ((), ("k1", "k2")), ("", "wayline_router", "wayline_router_second")
    )
]


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_a_connections_name_says_what_it_was_made_of(name: ConnectionName):
    assert ConnectionName.parse(str(name)) == name


def test_a_name_tells_the_role_of_the_database_and_no_password():
    settings = BusSettings(postgres_dsn="postgresql://wayline_router_second:secret@a:5432,b:5432/wayline")

    assert Link("router").name_of(settings).role == "wayline_router_second"
    assert "secret" not in str(Link("router").name_of(settings))
    assert Link("executor").name_of(BusSettings()).role == ""
