"""The servers themselves are tested here: they are started as an installation starts them."""

from __future__ import annotations

import pytest

from wayline.embedded import NatsServer


@pytest.fixture(scope="session")
def nats_class() -> type[NatsServer]:
    return NatsServer
