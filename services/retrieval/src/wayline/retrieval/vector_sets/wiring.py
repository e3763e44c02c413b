"""What the sets of vectors are made of, and what they hear."""

from __future__ import annotations

from typing import Any

from wayline.chassis import Ask, asks
from wayline.contracts.vector_sets import BuildVectors, GetVectorSets, SwitchVectors, UndoVectors
from wayline.retrieval.settings import Settings
from wayline.retrieval.vector_sets.handlers import VectorSetHandlers
from wayline.retrieval.vector_sets.set_table import VectorSetTable


def vector_set_asks(sets: VectorSetTable, settings: Settings) -> list[Ask[Any]]:
    """Return the requests about sets of vectors, bound to what answers them."""
    handlers = VectorSetHandlers(sets, settings)
    return [
        asks(GetVectorSets, handlers.on_get),
        asks(BuildVectors, handlers.on_build),
        asks(SwitchVectors, handlers.on_switch),
        asks(UndoVectors, handlers.on_undo),
    ]
