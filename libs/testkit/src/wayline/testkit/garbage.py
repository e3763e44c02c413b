"""Look for garbage only among what tests make: ten thousand collected tests and all modules stay anyway."""

import gc

import pytest

THRESHOLDS = (20_000, 20, 50)
"""Far above Python's own (700, 10, 10): a full search of a worker's 400 MB takes most of a second."""


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave everything that stands now out of every later search."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
