"""One Model protocol, and the models behind it."""

from wayline.llm.model import File, Finished, Model, ModelError, ModelRequest, Piece, TextDelta, UsageSeen
from wayline.llm.prices import cost, saved

__all__ = [
    "File",
    "Finished",
    "Model",
    "ModelError",
    "ModelRequest",
    "Piece",
    "TextDelta",
    "UsageSeen",
    "cost",
    "saved",
]
