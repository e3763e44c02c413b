"""What every evaluation has: it is slow, and what it measured is told when all have run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from wayline.testkit.processes import EMBEDS

HERE = Path(__file__).parent
TOLD = pytest.StashKey[list[str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def model_on_board(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search by meaning as an installation does by default; other tests have words alone, for their speed."""
    monkeypatch.delenv(EMBEDS, raising=False)


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Say a result: it is printed at the end, whether the test holds or not."""
    return request.config.stash.setdefault(TOLD, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    told = config.stash.get(TOLD, [])
    if told:
        terminalreporter.section("what was measured")
        for text in told:
            terminalreporter.write_line(text)
