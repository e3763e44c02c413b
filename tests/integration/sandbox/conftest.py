from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from wayline.sandbox import Sandbox


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox() as sandbox:
        yield sandbox
