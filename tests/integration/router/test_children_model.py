"""A child is begun once and its end is what its parent reads, wherever a router or an executor is killed.

Whoever is cancelled stops its children first: no child that its parent has not named goes on after the parent's end.
"""

from __future__ import annotations

import random

import pytest

from wayline.chassis import Bus
from wayline.testkit.walks import seeds

from .conftest import Office
from .family_world import LEAD, MODULES, FamilyWorld, walk


@pytest.fixture
async def world(bus: Bus, office: Office, monkeypatch: pytest.MonkeyPatch) -> FamilyWorld:
    await office.agents.seed({"lead": LEAD})
    world = FamilyWorld(bus, office.store)
    world.put_in_place(monkeypatch, *MODULES)
    return world


@pytest.mark.parametrize("seed", seeds(4))
async def test_a_parent_reads_its_childrens_ends_whoever_dies(world: FamilyWorld, seed: int):
    await walk(world, random.Random(seed))
