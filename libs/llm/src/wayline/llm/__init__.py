"""One Model protocol, and the models behind it."""

from wayline.llm.escalation import Cause, next_route
from wayline.llm.model import File, Finished, Model, ModelError, ModelRequest, Piece, TextDelta, UsageSeen
from wayline.llm.prices import cost, saved

__all__ = [
    "Cause",
    "File",
    "Finished",
    "Model",
    "ModelError",
    "ModelRequest",
    "Piece",
    "TextDelta",
    "UsageSeen",
    "cost",
    "next_route",
    "saved",
]
